package dev.vgpu.samples.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.onnxruntime.VgpuSession;
import dev.vgpu.request.PreemptionClass;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class BatchJobTest {
  private static final int ROWS = 60 * BatchJob.BATCH;

  private static CompletableFuture<Double> inThread(VgpuSession session) {
    CompletableFuture<Double> sum = new CompletableFuture<>();
    new Thread(
            () -> {
              try {
                sum.complete(BatchJob.score(session, ROWS));
              } catch (Exception | Error e) {
                sum.completeExceptionally(e);
              }
            })
        .start();
    return sum;
  }

  @Test
  void aJobThatGivesWayHasTheResultOfOneThatDoesNot() throws Exception {
    try (GpuPool pool =
            GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build());
        VirtualGpu online =
            pool.acquire(
                BatchJob.REQUEST.toBuilder()
                    .name("online")
                    .preemptionClass(PreemptionClass.ONLINE)
                    .build());
        VirtualGpu offline = pool.acquire(BatchJob.REQUEST);
        VgpuSession session = BatchJob.open(offline)) {
      double alone = BatchJob.score(session, ROWS);
      assertThat(alone).isFinite().isNotZero();
      assertThat(offline.usage().preemptions()).isZero();

      CompletableFuture<Double> beside = inThread(session);
      while (offline.usage().preemptions() == 0 && !beside.isDone()) {
        online.run(() -> {});
      }

      assertThat(offline.usage().preemptions()).isPositive();
      assertThat(beside.get()).isEqualTo(alone);
    }
  }
}
