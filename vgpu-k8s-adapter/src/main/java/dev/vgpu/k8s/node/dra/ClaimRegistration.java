package dev.vgpu.k8s.node.dra;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.proto.registration.InfoRequest;
import dev.vgpu.k8s.proto.registration.PluginInfo;
import dev.vgpu.k8s.proto.registration.RegistrationGrpc;
import dev.vgpu.k8s.proto.registration.RegistrationStatus;
import dev.vgpu.k8s.proto.registration.RegistrationStatusResponse;
import io.grpc.stub.StreamObserver;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Tells the kubelet where the DRA driver's socket is. Safe for use by several threads. */
final class ClaimRegistration extends RegistrationGrpc.RegistrationImplBase {
  private static final Logger log = LoggerFactory.getLogger(ClaimRegistration.class);

  /** Names from k8s.io/kubelet/pkg/apis/pluginregistration/v1 and .../dra/v1. */
  private static final String TYPE = "DRAPlugin";

  private static final String VERSION = "v1.DRAPlugin";

  /** From k8s.io/kubelet/pkg/apis/dra-health/v1alpha1. */
  private static final String HEALTH = "v1alpha1.DRAResourceHealth";

  private final Path endpoint;

  ClaimRegistration(Path endpoint) {
    this.endpoint = endpoint;
  }

  @Override
  public void getInfo(InfoRequest request, StreamObserver<PluginInfo> answers) {
    answers.onNext(
        PluginInfo.newBuilder()
            .setType(TYPE)
            .setName(Driver.NAME)
            .setEndpoint(endpoint.toString())
            .addSupportedVersions(VERSION)
            .addSupportedVersions(HEALTH)
            .build());
    answers.onCompleted();
  }

  @Override
  public void notifyRegistrationStatus(
      RegistrationStatus status, StreamObserver<RegistrationStatusResponse> answers) {
    if (status.getPluginRegistered()) {
      log.info("the kubelet has registered the DRA driver {}", Driver.NAME);
    } else {
      log.error("the kubelet refuses the DRA driver {}: {}", Driver.NAME, status.getError());
    }
    answers.onNext(RegistrationStatusResponse.getDefaultInstance());
    answers.onCompleted();
  }
}
