package dev.vgpu.k8s.scheduler;

import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.util.function.DoubleSupplier;

/**
 * Feeds the API's nodes and pods to a line, from {@link #begin} on. If a watch expires, the
 * informer renews it and delivers the differences. Must be closed.
 */
final class ClusterWatch implements AutoCloseable {
  private final PodLine line;
  private final ExtenderService service;
  private final DoubleSupplier clockS;
  private final SharedIndexInformer<Node> nodes;
  private final SharedIndexInformer<Pod> pods;
  private volatile boolean isOn;

  ClusterWatch(
      KubernetesClient client, PodLine line, ExtenderService service, DoubleSupplier clockS) {
    this.line = line;
    this.service = service;
    this.clockS = clockS;
    nodes = client.nodes().inform(new NodeEvents());
    pods = client.pods().inAnyNamespace().inform(new PodEvents());
  }

  /** Forgets everything, reads the API's state, and follows it from now on. */
  synchronized void begin() {
    line.begin(nodes.getStore().list(), pods.getStore().list(), clockS.getAsDouble());
    isOn = true;
    // Includes changes that arrived between the two lines above.
    line.nodes(nodes.getStore().list(), clockS.getAsDouble());
    pods.getStore().list().forEach(pod -> line.see(pod, clockS.getAsDouble()));
    service.carryOut();
  }

  /** Stops following. */
  void end() {
    isOn = false;
  }

  @Override
  public void close() {
    end();
    nodes.close();
    pods.close();
  }

  private final class NodeEvents implements ResourceEventHandler<Node> {
    @Override
    public void onAdd(Node node) {
      changed();
    }

    @Override
    public void onUpdate(Node old, Node node) {
      if (!NodeGpus.of(old).equals(NodeGpus.of(node))) {
        changed();
      }
    }

    @Override
    public void onDelete(Node node, boolean isStateUnknown) {
      changed();
    }

    private void changed() {
      if (isOn) {
        line.nodes(nodes.getStore().list(), clockS.getAsDouble());
        service.carryOut();
      }
    }
  }

  private final class PodEvents implements ResourceEventHandler<Pod> {
    @Override
    public void onAdd(Pod pod) {
      if (isOn) {
        line.see(pod, clockS.getAsDouble());
        service.carryOut();
      }
    }

    @Override
    public void onUpdate(Pod old, Pod pod) {
      onAdd(pod);
    }

    @Override
    public void onDelete(Pod pod, boolean isStateUnknown) {
      if (isOn) {
        line.gone(pod.getMetadata().getUid(), clockS.getAsDouble());
        service.carryOut();
      }
    }
  }
}
