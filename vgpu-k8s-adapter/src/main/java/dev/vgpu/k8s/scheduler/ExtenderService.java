package dev.vgpu.k8s.scheduler;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.k8s.http.ApiFailures;
import dev.vgpu.k8s.names.GangName;
import dev.vgpu.k8s.names.PodRefusedException;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.scheduler.line.Action;
import dev.vgpu.k8s.scheduler.line.Answer;
import dev.vgpu.k8s.scheduler.line.Bindings;
import dev.vgpu.k8s.scheduler.line.Candidate;
import dev.vgpu.k8s.scheduler.line.PodLine;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.KubernetesClientException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.DoubleSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers the requests of the extender protocol, with the protocol's JSON as input and output. A
 * pod in a question only names the pod: anybody can write a question. Safe for use by several
 * threads; {@link #bind} waits for the rest of a gang.
 */
final class ExtenderService {
  private static final Logger LOG = LoggerFactory.getLogger(ExtenderService.class);
  private static final int BEST = 10;
  private static final String NEEDED =
      "Pod and NodeNames are needed: set nodeCacheCapable of the extender";
  private static final String NEEDED_TO_PREEMPT =
      "Pod and NodeNameToMetaVictims are needed: set nodeCacheCapable of the extender";

  private final PodLine line;
  private final Cluster cluster;
  private final Evictions evictions;
  private final Executor writers;
  private final DoubleSupplier clockS;
  private final Duration hold;
  private final ClaimFilter claims;
  private final Pods pods;

  /** Finds pods. */
  interface Pods {
    /** {@return the pod as the API has it; empty if it has no such pod, or one with another UID} */
    Optional<Pod> find(String namespace, String name, String uid);
  }

  /** Says which nodes' devices a pod's claims may not get now. */
  interface ClaimFilter {
    /** {@return why not, by node; without the nodes that the pod may use} */
    Map<String, String> refusals(Pod pod, Set<String> nodes);
  }

  /**
   * Creates the service.
   *
   * @param line makes the decisions
   * @param cluster receives the writes
   * @param writers carry out the writes that are not part of an answer
   * @param clockS the time in seconds
   * @param hold how long a bind waits for the rest of its gang
   * @param claims keeps devices for others
   * @param pods the API's pods: what a question says of a pod is not believed
   */
  ExtenderService(
      PodLine line,
      Cluster cluster,
      Executor writers,
      DoubleSupplier clockS,
      Duration hold,
      ClaimFilter claims,
      Pods pods) {
    this.line = line;
    this.cluster = cluster;
    evictions = new Evictions(cluster);
    this.writers = writers;
    this.clockS = clockS;
    this.hold = hold;
    this.claims = claims;
    this.pods = pods;
  }

  /**
   * What the protocol asks of a filter.
   *
   * @param pod the pod
   * @param nodes the names of the nodes that are left
   * @param names the same as JSON, for the answer
   */
  private record Candidates(Pod pod, Set<String> nodes, ArrayNode names) {}

  /** {@return what is asked; otherwise adds the error to the answer} */
  private Optional<Candidates> candidates(JsonNode args, ObjectNode result) {
    if (args.path("Pod").path("metadata").isMissingNode()
        || !(args.path("NodeNames") instanceof ArrayNode names)) {
      result.put("Error", NEEDED);
      return Optional.empty();
    }
    Optional<Pod> pod;
    try {
      pod = find(args);
    } catch (KubernetesClientException e) {
      result.put("Error", "the pod cannot be read: " + e.getMessage());
      return Optional.empty();
    }
    if (pod.isEmpty()) {
      result.put("Error", "the API server has no such pod");
      return Optional.empty();
    }
    Set<String> nodes = new HashSet<>(2 * names.size());
    names.forEach(name -> nodes.add(name.asText()));
    return Optional.of(new Candidates(pod.get(), nodes, names));
  }

  private Optional<Pod> find(JsonNode args) {
    JsonNode meta = args.path("Pod").path("metadata");
    return pods.find(
        meta.path("namespace").asText(), meta.path("name").asText(), meta.path("uid").asText());
  }

  /** {@return the nodes that the pod may use} */
  JsonNode filter(JsonNode args) {
    ObjectNode result = JsonNodeFactory.instance.objectNode();
    Optional<Candidates> asked = candidates(args, result);
    if (asked.isEmpty()) {
      return result;
    }
    Pod pod = asked.get().pod;
    Set<String> listed = asked.get().nodes;
    Answer answer;
    lookForBindings(pod, listed);
    try {
      answer = line.filter(pod, listed, size(pod), clockS.getAsDouble());
    } catch (KubernetesClientException e) {
      return result.put("Error", "its gang's group object cannot be read: " + e.getMessage());
    }
    forgetIfGone(pod);
    carryOut();
    switch (answer.kind()) {
      case ANY -> result.set("NodeNames", asked.get().names);
      case NODE -> result.putArray("NodeNames").add(answer.text());
      case NONE -> {
        result.putArray("NodeNames");
        // Unresolvable, to avoid the scheduler's own preemption, which knows nothing of GPUs.
        ObjectNode failed = result.putObject("FailedAndUnresolvableNodes");
        JsonNode reason = failed.textNode(Answer.MARK + answer.text());
        listed.forEach(name -> failed.set(name, reason));
      }
    }
    return result.put("Error", "");
  }

  /**
   * {@return of the nodes where kube-scheduler would evict pods for another one, the one where that
   * gets its place then, with the same victims} kube-scheduler evicts nobody elsewhere. Without
   * such a node, nor if the pod cannot be looked up, it evicts nobody at all.
   *
   * @throws JsonProcessingException if it is not asked as the protocol says; nothing is done then
   */
  JsonNode preempt(JsonNode args) throws JsonProcessingException {
    JsonNode proposed = args.path("NodeNameToMetaVictims");
    List<Candidate> all = proposals(args);
    ObjectNode kept = JsonNodeFactory.instance.objectNode();
    try {
      Optional<Pod> pod = find(args);
      if (pod.isPresent()) {
        Answer answer = line.preempt(pod.get(), all, size(pod.get()), clockS.getAsDouble());
        forgetIfGone(pod.get());
        carryOut();
        all.stream()
            .map(Candidate::node)
            .filter(node -> answer.kind() == Answer.Kind.ANY || answer.text().equals(node))
            .forEach(node -> kept.set(node, proposed.path(node)));
      }
    } catch (KubernetesClientException e) {
      LOG.warn("nobody is evicted for a pod that cannot be looked up: {}", e.getMessage());
    }
    ObjectNode result = JsonNodeFactory.instance.objectNode();
    result.set("NodeNameToMetaVictims", kept);
    return result;
  }

  private static List<Candidate> proposals(JsonNode args) throws JsonProcessingException {
    JsonNode proposed = args.path("NodeNameToMetaVictims");
    if (!args.path("Pod").path("metadata").isObject() || !proposed.isObject()) {
      throw new JsonMappingException(null, NEEDED_TO_PREEMPT);
    }
    List<Candidate> all = new ArrayList<>();
    for (Map.Entry<String, JsonNode> one : proposed.properties()) {
      List<String> uids = new ArrayList<>();
      one.getValue().path("Pods").forEach(pod -> uids.add(pod.path("UID").asText()));
      JsonNode violations = one.getValue().path("NumPDBViolations");
      if (uids.isEmpty() || uids.contains("") || !violations.canConvertToLong()) {
        throw new JsonMappingException(
            null,
            "a node's Pods with the UID of each, and its NumPDBViolations, are needed: node="
                + one.getKey());
      }
      all.add(new Candidate(one.getKey(), uids, violations.asLong()));
    }
    return all;
  }

  /** If a pod was deleted during the question, the line was told before it knew the pod. */
  private void forgetIfGone(Pod pod) {
    String uid = pod.getMetadata().getUid();
    try {
      if (pods.find(pod.getMetadata().getNamespace(), pod.getMetadata().getName(), uid).isEmpty()) {
        line.gone(uid, clockS.getAsDouble());
      }
    } catch (KubernetesClientException e) {
      LOG.warn("whether a pod is still there cannot be read: {}", e.getMessage());
    }
  }

  /** The answer to a binding may have been lost: only the API knows whether the pod is bound. */
  private void lookForBindings(Pod pod, Set<String> listed) {
    String uid = pod.getMetadata().getUid();
    line.doubt(uid, listed).filter(this::isUnbound).ifPresent(doubt -> line.notBound(uid, doubt));
  }

  private boolean isUnbound(Bindings.Doubt doubt) {
    try {
      return doubt.members().stream().allMatch(cluster::isUnbound);
    } catch (KubernetesClientException e) {
      LOG.warn("whether a pod is bound cannot be read: {}", e.getMessage());
      return false;
    }
  }

  /**
   * {@return the nodes whose devices a pod's claims may get} The answer for pods without such
   * claims is all nodes.
   */
  JsonNode filterClaims(JsonNode args) {
    ObjectNode result = JsonNodeFactory.instance.objectNode();
    Optional<Candidates> asked = candidates(args, result);
    if (asked.isEmpty()) {
      return result;
    }
    Set<String> listed = asked.get().nodes;
    Map<String, String> refusals = claims.refusals(asked.get().pod, listed);
    ArrayNode chosen = asked.get().names;
    if (!refusals.isEmpty()) {
      chosen.removeIf(name -> refusals.containsKey(name.asText()));
    }
    result.set("NodeNames", chosen);
    // Unresolvable, because kube-scheduler must not evict pods for one that has to wait.
    ObjectNode failed = result.putObject("FailedAndUnresolvableNodes");
    refusals.forEach(failed::put);
    return result.put("Error", "");
  }

  private int size(Pod pod) {
    try {
      Optional<GangName> gang = PodRequests.of(pod).flatMap(PodRequest::gang);
      if (gang.isEmpty() || gang.get().size() > 0) {
        return gang.map(GangName::size).orElse(1);
      }
      return cluster.size(pod.getMetadata().getNamespace(), gang.get()).orElse(0);
    } catch (PodRefusedException e) {
      return 1; // the line refuses the pod with the reason
    }
  }

  /**
   * Looks for the group objects of gangs that had none. Blocks until the API server answers.
   *
   * @param most how many are looked for at most; a later call goes on with the others
   */
  void lookForSizes(int most) {
    for (Pod pod : line.unsized(most)) {
      try {
        int size = size(pod);
        if (size > 0) {
          line.sized(pod, size, clockS.getAsDouble());
        }
      } catch (KubernetesClientException e) {
        LOG.warn("a gang's group object cannot be read: {}", e.getMessage());
        if (!ApiFailures.isOnlyOfItsObject(e)) {
          break;
        }
      }
    }
    carryOut();
  }

  /** {@return a score for each node; the filter has left only one} */
  JsonNode prioritize(JsonNode args) {
    ArrayNode scores = JsonNodeFactory.instance.arrayNode();
    JsonNode names = args.path("NodeNames");
    names.forEach(
        name ->
            scores
                .addObject()
                .put("Host", name.asText())
                .put("Score", names.size() == 1 ? BEST : 0));
    return scores;
  }

  /** {@return an empty error once the pod is bound; otherwise the reason} */
  JsonNode bind(JsonNode args) throws InterruptedException {
    String uid = args.path("PodUID").asText();
    String node = args.path("Node").asText();
    String error = isOthers(args, uid) ? write(args, uid, node, Map.of()) : bind(args, uid, node);
    carryOut();
    return JsonNodeFactory.instance.objectNode().put("Error", error);
  }

  private String bind(JsonNode args, String uid, String node) throws InterruptedException {
    String error = await(uid, node);
    if (!error.isEmpty()) {
      return error;
    }
    Map<String, String> notes = line.annotations(uid, clockS.getAsDouble());
    return notes.isEmpty()
        ? "it has lost its place; it has to be filtered again"
        : write(args, uid, node, notes);
  }

  /** kube-scheduler asks about resources by their names, also if a pod gets nothing by them. */
  private boolean isOthers(JsonNode args, String uid) {
    try {
      return pods.find(args.path("PodNamespace").asText(), args.path("PodName").asText(), uid)
          .filter(PodRequests::isOthers)
          .isPresent();
    } catch (KubernetesClientException e) {
      LOG.warn("a pod that is to be bound cannot be read: {}", e.getMessage());
      return false;
    }
  }

  private String write(JsonNode args, String uid, String node, Map<String, String> notes) {
    String name = args.path("PodName").asText();
    boolean isRefused = false;
    try {
      cluster.bind(args.path("PodNamespace").asText(), name, uid, node, notes);
      return "";
    } catch (KubernetesClientException e) {
      isRefused = ApiFailures.isRefused(e);
      LOG.warn("cannot be bound: pod={} node={}: {}", name, node, e.getMessage());
      if (ApiFailures.isGone(e)) {
        line.gone(uid, clockS.getAsDouble());
      }
      return "cannot be bound: pod=" + name + " node=" + node + ": " + e.getMessage();
    } finally {
      line.bindingEnded(uid, isRefused);
    }
  }

  private String await(String uid, String node) throws InterruptedException {
    CompletableFuture<String> go = line.arrive(uid, node);
    try {
      return go.get(hold.toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      line.tooLate(uid, "its gang did not come together in time", clockS.getAsDouble());
      return go.getNow("its gang did not come together in time");
    } catch (ExecutionException e) {
      throw new IllegalStateException(e.getCause());
    }
  }

  /** Starts the decided writes. */
  void carryOut() {
    for (Action action : line.drain()) {
      writers.execute(() -> carryOut(action));
    }
  }

  private void carryOut(Action action) {
    if (action instanceof Action.Write write) {
      carryOut(write);
    } else if (action instanceof Action.Evict evict) {
      carryOut(evict);
    }
  }

  private void carryOut(Action.Write write) {
    String uid = write.pod().getMetadata().getUid();
    try {
      cluster.annotate(write.pod(), write.annotations());
      line.written(uid, write.place());
    } catch (KubernetesClientException e) {
      LOG.warn("a place cannot be written: {}", e.getMessage());
      if (ApiFailures.isGone(e)) {
        line.gone(uid, clockS.getAsDouble());
      } else {
        line.giveUp(uid, "its place could not be written: " + e.getMessage(), clockS.getAsDouble());
      }
    }
  }

  private void carryOut(Action.Evict evict) {
    try {
      evictions.evict(
          evict.pods(), pod -> line.gone(pod.getMetadata().getUid(), clockS.getAsDouble()));
    } catch (KubernetesClientException e) {
      line.evictionRefused(evict.crew(), String.valueOf(e.getMessage()), clockS.getAsDouble());
    }
  }
}
