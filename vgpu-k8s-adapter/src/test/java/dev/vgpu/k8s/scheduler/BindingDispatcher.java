package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import io.fabric8.kubernetes.api.model.Binding;
import io.fabric8.kubernetes.api.model.DeleteOptions;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.policy.v1.Eviction;
import io.fabric8.kubernetes.client.server.mock.KubernetesCrudDispatcher;
import io.fabric8.kubernetes.client.utils.Serialization;
import io.fabric8.mockwebserver.dsl.HttpMethod;
import io.fabric8.mockwebserver.http.Buffer;
import io.fabric8.mockwebserver.http.Headers;
import io.fabric8.mockwebserver.http.MockResponse;
import io.fabric8.mockwebserver.http.RecordedRequest;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Handles bindings as the API server does: the pod gets its node and the binding's annotations in
 * one write, unless it is already bound or has another UID. Evicts pods, or tries to. Counts the
 * writes to pods, and to the status of claims.
 */
final class BindingDispatcher extends KubernetesCrudDispatcher {
  private static final String BINDING = "/binding";
  private static final String EVICTION = "/eviction";

  final AtomicInteger writes = new AtomicInteger();

  /** How often each pod was bound, by its path. */
  final Map<String, Integer> bindings = new ConcurrentHashMap<>();

  /** The names of pods that a disruption budget keeps. */
  final Set<String> kept = ConcurrentHashMap.newKeySet();

  /** Runs at the end of each trial of an eviction. */
  volatile Runnable afterTrial = () -> {};

  /** The names of the pods whose evictions were tried, and of those that were evicted. */
  final List<String> tried = new CopyOnWriteArrayList<>();

  final List<String> evicted = new CopyOnWriteArrayList<>();

  /** Whether it carries out bindings, and then fails before it answers. */
  volatile boolean losesAnswers;

  /** The status with which it fails bindings, without carrying them out; 0 for none. */
  volatile int failsWith;

  /** Runs at a write to a pod, see {@link #interruptAt}. */
  private volatile Runnable interruption = () -> {};

  private volatile int interruptedWrite;
  private volatile boolean isAfter;

  /** How often all pods were listed. */
  final AtomicInteger lists = new AtomicInteger();

  /** Runs before all pods are listed. */
  volatile Runnable atList = () -> {};

  /** How many requests were not answered at once. */
  final AtomicInteger unserved = new AtomicInteger();

  /** Requests wait for it. */
  private volatile CountDownLatch back = new CountDownLatch(0);

  /** Keeps its state, and answers no request until it is back. */
  void goAway() {
    back = new CountDownLatch(1);
  }

  void comeBack() {
    back.countDown();
  }

  /** Runs this before or after it carries out the write of that number, from 1. */
  void interruptAt(int write, boolean after, Runnable what) {
    interruption = what;
    isAfter = after;
    interruptedWrite = writes.get() + write;
  }

  private int begin() {
    int write = writes.incrementAndGet();
    if (write == interruptedWrite && !isAfter) {
      interruption.run();
    }
    return write;
  }

  private MockResponse end(int write, MockResponse response) {
    if (write == interruptedWrite && isAfter) {
      interruption.run();
    }
    return response;
  }

  @Override
  public MockResponse dispatch(RecordedRequest request) {
    if (back.getCount() > 0) {
      unserved.incrementAndGet();
      try {
        back.await();
      } catch (InterruptedException e) {
        return new MockResponse().setResponseCode(503);
      }
    }
    if (request.getPath().startsWith("/api/v1/pods") && !request.getPath().contains("watch=true")) {
      lists.incrementAndGet();
      atList.run();
    }
    return super.dispatch(request);
  }

  @Override
  public MockResponse handleCreate(RecordedRequest request) {
    int eviction = request.getPath().indexOf(EVICTION);
    if (eviction > 0) {
      return evict(request, request.getPath().substring(0, eviction));
    }
    if (!request.getPath().endsWith(BINDING)) {
      return super.handleCreate(request);
    }
    int write = begin();
    return end(write, bind(request));
  }

  private MockResponse evict(RecordedRequest request, String path) {
    String name = path.substring(path.lastIndexOf('/') + 1);
    DeleteOptions options =
        Serialization.unmarshal(request.getUtf8Body(), Eviction.class).getDeleteOptions();
    boolean isTrial = options.getDryRun().contains("All");
    assertThat(request.getPath().endsWith("?dryRun=All")).isEqualTo(isTrial);
    MockResponse found = handleGet(path);
    if (found.code() != 200) {
      return found;
    }
    (isTrial ? tried : evicted).add(name);
    if (kept.contains(name)) {
      evicted.remove(name);
      return new MockResponse().setResponseCode(429);
    }
    if (isTrial) {
      afterTrial.run();
      return created();
    }
    if (!options.getPreconditions().getUid().equals(pod(found).getMetadata().getUid())) {
      return new MockResponse().setResponseCode(409);
    }
    int write = begin();
    MockResponse deleted = handleDelete(path);
    return end(write, deleted.code() == 200 ? created() : deleted);
  }

  private static Pod pod(MockResponse found) {
    byte[] body = found.getBody().getBytes();
    return Serialization.unmarshal(
        body == null ? "" : new String(body, StandardCharsets.UTF_8), Pod.class);
  }

  private static MockResponse created() {
    return new MockResponse()
        .setResponseCode(201)
        .setBody("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\"}");
  }

  private MockResponse bind(RecordedRequest request) {
    String path = request.getPath().substring(0, request.getPath().length() - BINDING.length());
    MockResponse found = handleGet(path);
    if (found.code() != 200) {
      return found;
    }
    if (failsWith != 0) {
      return new MockResponse().setResponseCode(failsWith);
    }
    Pod pod = pod(found);
    Binding binding = Serialization.unmarshal(request.getUtf8Body(), Binding.class);
    if (pod.getSpec().getNodeName() != null
        || !pod.getMetadata().getUid().equals(binding.getMetadata().getUid())) {
      return new MockResponse().setResponseCode(409);
    }
    Map<String, String> notes = binding.getMetadata().getAnnotations();
    Pod bound = Pods.bound(pod, binding.getTarget().getName(), notes == null ? Map.of() : notes);
    byte[] json = Serialization.asJson(bound).getBytes(StandardCharsets.UTF_8);
    MockResponse updated =
        handleUpdate(
            new RecordedRequest(
                "HTTP/1.1", HttpMethod.PUT, path, Headers.builder().build(), new Buffer(json)));
    if (updated.code() == 200) {
      bindings.merge(path, 1, Integer::sum);
    }
    if (losesAnswers) {
      return new MockResponse().setResponseCode(500);
    }
    return updated.code() == 200 ? created() : updated;
  }

  /** A condition of a claim counts as a write. */
  @Override
  public MockResponse handleUpdate(RecordedRequest request) {
    boolean isCondition =
        request.getPath().contains("/resourceclaims/") && request.getPath().endsWith("/status");
    if (!isCondition) {
      return super.handleUpdate(request);
    }
    int write = begin();
    return end(write, super.handleUpdate(request));
  }

  @Override
  public MockResponse handlePatch(RecordedRequest request) {
    if (request.getPath().contains("/leases/")) {
      return super.handlePatch(request);
    }
    int write = begin();
    return end(write, super.handlePatch(request));
  }
}
