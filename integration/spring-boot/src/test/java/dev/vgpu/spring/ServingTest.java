package dev.vgpu.spring;

import static dev.vgpu.spring.ModelsTest.service;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.CallOptions;
import dev.vgpu.GpuDriverException;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuListener;
import dev.vgpu.GpuPool;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.VirtualGpu;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.availability.ApplicationAvailabilityAutoConfiguration;
import org.springframework.boot.availability.ApplicationAvailability;
import org.springframework.boot.availability.AvailabilityChangeEvent;
import org.springframework.boot.availability.LivenessState;
import org.springframework.boot.availability.ReadinessState;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.GenericApplicationContext;

/** What a service has of it while it runs and when it stops. */
class ServingTest {
  /** Another thread does it; the test's timeout bounds the wait. */
  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      LockSupport.parkNanos(100_000);
    }
  }

  private static ApplicationContextRunner available() {
    return service("vgpu.models.m.memory=1GiB")
        .withConfiguration(AutoConfigurations.of(ApplicationAvailabilityAutoConfiguration.class));
  }

  private static void accept(ApplicationContext context) {
    AvailabilityChangeEvent.publish(context, LivenessState.CORRECT);
    AvailabilityChangeEvent.publish(context, ReadinessState.ACCEPTING_TRAFFIC);
  }

  @Test
  void aLostGpuRefusesTrafficUntilItIsBackAndLivenessStays() {
    available()
        .run(
            context -> {
              accept(context);
              ApplicationAvailability state = context.getBean(ApplicationAvailability.class);
              assertThat(state.getReadinessState()).isEqualTo(ReadinessState.ACCEPTING_TRAFFIC);

              TestDriver.turn(GpuHealth.LOST, "fell off the bus");
              await(() -> state.getReadinessState() == ReadinessState.REFUSING_TRAFFIC);
              assertThat(state.getLivenessState()).isEqualTo(LivenessState.CORRECT);
              VgpuEndpoint.Gpu shown = context.getBean(VgpuEndpoint.class).overview().gpus().get(0);
              assertThat(shown.health()).isEqualTo("lost");
              assertThat(shown.healthReason()).contains("fell off the bus");

              TestDriver.turn(GpuHealth.HEALTHY, "");
              await(() -> state.getReadinessState() == ReadinessState.ACCEPTING_TRAFFIC);
            });
  }

  /** A driver may hang rather than fail, so the work must not reach it. */
  @Test
  void callsOfALostGpuFailWithTheReasonUntilItIsBack() {
    available()
        .run(
            context -> {
              VirtualGpu gpu = context.getBean(VirtualGpu.class);
              AtomicInteger ran = new AtomicInteger();
              TestDriver.turn(GpuHealth.LOST, "fell off the bus");
              LostGpus lost = context.getBean(LostGpus.class);
              await(() -> !lost.isEmpty());

              assertLost(() -> gpu.call(ran::incrementAndGet));
              assertLost(() -> gpu.call(ran::incrementAndGet, CallOptions.defaults()));
              assertLost(() -> gpu.call(preemptible(ran)));
              assertLost(() -> gpu.call(preemptible(ran), CallOptions.defaults()));
              assertLost(() -> gpu.run(ran::incrementAndGet));
              assertLost(() -> gpu.run(ran::incrementAndGet, CallOptions.defaults()));
              assertLost(gpu::enter);
              assertLost(() -> gpu.enter(CallOptions.defaults()));
              assertThat(gpu.submit(ran::incrementAndGet))
                  .isCompletedExceptionally()
                  .failsWithin(Duration.ZERO)
                  .withThrowableThat()
                  .withMessageContaining("the GPU is lost: fell off the bus");
              assertThat(ran).hasValue(0);

              TestDriver.turn(GpuHealth.HEALTHY, "");
              await(lost::isEmpty);
              assertThat(gpu.call(ran::incrementAndGet)).isEqualTo(1);
            });
  }

  private static void assertLost(ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(GpuDriverException.class)
        .hasMessageContaining("the GPU is lost: fell off the bus")
        .hasMessageContaining("gpu=GPU-spring-test name=m virtualGpu=");
  }

  private static PreemptibleCall<Integer> preemptible(AtomicInteger ran) {
    return new PreemptibleCall<>() {
      @Override
      public Integer call() {
        return ran.incrementAndGet();
      }

      @Override
      public void cancel() {}
    };
  }

  @Test
  void aCallThatRunsWhenTheGpuIsLostHasTheReasonBesideItsOwnError() {
    available()
        .run(
            context -> {
              VirtualGpu gpu = context.getBean(VirtualGpu.class);
              LostGpus lost = context.getBean(LostGpus.class);
              assertThatThrownBy(
                      () ->
                          gpu.run(
                              () -> {
                                TestDriver.turn(GpuHealth.LOST, "fell off the bus");
                                await(() -> !lost.isEmpty());
                                throw new IllegalStateException("CUDA error 999");
                              }))
                  .hasMessage("CUDA error 999")
                  .satisfies(
                      error ->
                          assertThat(error.getSuppressed())
                              .singleElement()
                              .isInstanceOf(GpuDriverException.class));
              TestDriver.turn(GpuHealth.HEALTHY, "");
              await(lost::isEmpty);
              assertThatThrownBy(
                      () ->
                          gpu.call(
                              () -> {
                                throw new IllegalStateException("a caller's own");
                              }))
                  .hasMessage("a caller's own")
                  .satisfies(error -> assertThat(error.getSuppressed()).isEmpty());
            });
  }

  @Test
  void aGpuThatWasLostBeforeTheServiceWasReady() {
    available()
        .run(
            context -> {
              TestDriver.turn(GpuHealth.LOST, "early");
              await(
                  () ->
                      context
                          .getBean(VgpuEndpoint.class)
                          .overview()
                          .gpus()
                          .get(0)
                          .health()
                          .equals("lost"));
              accept(context);

              ApplicationAvailability state = context.getBean(ApplicationAvailability.class);
              await(() -> state.getReadinessState() == ReadinessState.REFUSING_TRAFFIC);
              TestDriver.turn(GpuHealth.HEALTHY, "");
              await(() -> state.getReadinessState() == ReadinessState.ACCEPTING_TRAFFIC);
            });
  }

  @Test
  void aServiceThatRefusedByItselfIsNotOverruledWhenTheGpuIsBack() {
    available()
        .run(
            context -> {
              accept(context);
              ApplicationAvailability state = context.getBean(ApplicationAvailability.class);
              TestDriver.turn(GpuHealth.LOST, "for a while");
              await(() -> state.getReadinessState() == ReadinessState.REFUSING_TRAFFIC);
              AvailabilityChangeEvent.publish(context, ReadinessState.REFUSING_TRAFFIC);

              TestDriver.turn(GpuHealth.HEALTHY, "");
              VgpuEndpoint endpoint = context.getBean(VgpuEndpoint.class);
              await(
                  () ->
                      endpoint.overview().events().stream()
                          .anyMatch(event -> event.text().contains("health=HEALTHY")));

              assertThat(state.getReadinessState()).isEqualTo(ReadinessState.REFUSING_TRAFFIC);
            });
  }

  @Test
  void theEndpointShowsWhoHoldsWhatAndExplains() {
    service("vgpu.models.m.memory=1GiB", "vgpu.models.m.share=25", "vgpu.models.m.class=online")
        .run(
            context -> {
              VgpuEndpoint endpoint = context.getBean(VgpuEndpoint.class);
              context.getBean(VirtualGpu.class).run(() -> {});

              VgpuEndpoint.Overview overview = endpoint.overview();
              assertThat(overview.leases()).hasSize(1);
              VgpuEndpoint.Lease lease = overview.leases().get(0);
              assertThat(lease.name()).isEqualTo("m");
              assertThat(lease.entitledPercent()).isEqualTo(25.0);
              assertThat(lease.preemptionClass()).isEqualTo("online");
              assertThat(lease.calls()).isEqualTo(1);
              assertThat(overview.events()).anyMatch(event -> event.kind().equals("Acquired"));
              Map<String, List<VgpuEndpoint.Choice>> explained = endpoint.explain("m");
              assertThat(explained).isNotNull();
              assertThat(explained.get("choices"))
                  .isNotEmpty()
                  .allMatch(choice -> !choice.reason().isEmpty());
              assertThat(endpoint.explain("nobody")).isNull();
            });
  }

  @Configuration(proxyBeanMethods = false)
  static class Metered {
    @Bean
    MeterRegistry registry() {
      return new SimpleMeterRegistry();
    }
  }

  @Test
  void callsOfAModelAreTimedWhereThereIsARegistry() {
    service("vgpu.models.m.memory=1GiB")
        .withUserConfiguration(Metered.class)
        .run(
            context -> {
              context.getBean(VirtualGpu.class).run(() -> {});
              MeterRegistry registry = context.getBean(MeterRegistry.class);
              assertThat(registry.get("vgpu.wait").tag("name", "m").timer().count()).isEqualTo(1);
              context.getBean(dev.vgpu.micrometer.VgpuMetrics.class).bindTo(registry);
              assertThat(registry.get("vgpu.memory.quota").tag("name", "m").gauge().value())
                  .isEqualTo(1024.0 * 1024 * 1024);
            });
  }

  /** A session must not be freed under a run: beans go only when the last call has ended. */
  @Test
  void theStopWaitsForTheRunningCallBeforeItDestroysBeans() throws Exception {
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch leave = new CountDownLatch(1);
    CompletableFuture<String> call = new CompletableFuture<>();
    VirtualGpu[] gpu = new VirtualGpu[1];
    boolean[] endedBeforeBeansWent = new boolean[1];
    service("vgpu.models.m.memory=1GiB")
        .withBean(
            "session", AutoCloseable.class, () -> () -> endedBeforeBeansWent[0] = call.isDone())
        .run(
            context -> {
              gpu[0] = context.getBean(VirtualGpu.class);
              context.getBean("session");
              Thread running =
                  new Thread(
                      () -> {
                        try {
                          gpu[0].run(
                              () -> {
                                inside.countDown();
                                waitFor(leave);
                                call.complete("done");
                              });
                        } catch (InterruptedException e) {
                          call.completeExceptionally(e);
                        }
                      });
              running.start();
              inside.await();
              Thread ender =
                  new Thread(
                      () -> {
                        await(() -> gpu[0].isClosed());
                        leave.countDown();
                      });
              ender.start();
            });

    assertThat(call.get()).isEqualTo("done");
    assertThat(endedBeforeBeansWent[0]).isTrue();
  }

  private static void waitFor(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Stands for the web server: while it answers its last requests, their calls must still run. */
  private static final class Draining implements SmartLifecycle {
    private final VirtualGpu gpu;
    private final CompletableFuture<String> lastCall;
    private volatile boolean running;

    Draining(VirtualGpu gpu, CompletableFuture<String> lastCall) {
      this.gpu = gpu;
      this.lastCall = lastCall;
    }

    @Override
    public void start() {
      running = true;
    }

    @Override
    public void stop() {
      running = false;
      try {
        lastCall.complete(gpu.call(() -> "answered"));
      } catch (Exception e) {
        lastCall.completeExceptionally(e);
      }
    }

    @Override
    public boolean isRunning() {
      return running;
    }

    /** That of Spring's executors, which is below the web server's: it stops later than that. */
    @Override
    public int getPhase() {
      return Integer.MAX_VALUE / 2;
    }
  }

  @Test
  void requestsThatAreAnsweredDuringTheStopStillHaveTheirVirtualGpu() throws Exception {
    CompletableFuture<String> lastCall = new CompletableFuture<>();
    service("vgpu.models.m.memory=1GiB")
        .withInitializer(
            context ->
                ((GenericApplicationContext) context)
                    .registerBean(
                        Draining.class,
                        () -> new Draining(context.getBean(VirtualGpu.class), lastCall)))
        .run(context -> assertThat(context).hasNotFailed());

    assertThat(lastCall.get()).isEqualTo("answered");
  }

  @Test
  void aContextThatIsStoppedAndStartedAgainKeepsItsVirtualGpu() {
    service("vgpu.models.m.memory=1GiB")
        .run(
            context -> {
              VirtualGpu gpu = context.getBean(VirtualGpu.class);
              context.stop();
              assertThat(gpu.call(() -> "stopped")).isEqualTo("stopped");
              context.start();
              assertThat(gpu.call(() -> "started")).isEqualTo("started");
              assertThat(context.getBean(GpuShutdown.class).isPauseable()).isFalse();
            });
  }

  /** Tells its listeners of no health, unless a test does; a test may change its states. */
  private static final class DeafPool {
    private final GpuPool pool = GpuPool.open(ModelsTest.OwnPool.OPTIONS);
    private final BlockingQueue<UnaryOperator<Object>> answers = new LinkedBlockingQueue<>();
    private final List<GpuListener> healthListeners = new CopyOnWriteArrayList<>();

    GpuPool pool() {
      return (GpuPool)
          Proxy.newProxyInstance(
              GpuPool.class.getClassLoader(), new Class<?>[] {GpuPool.class}, this::answer);
    }

    private Object answer(Object unused, Method method, Object[] given) throws Throwable {
      if (method.getName().equals("listen")) {
        GpuListener listener = (GpuListener) given[0];
        healthListeners.add(listener);
        return pool.listen(
            event -> {
              if (!(event instanceof GpuEvent.HealthChanged)) {
                listener.onEvent(event);
              }
            });
      }
      try {
        Object answer = method.invoke(pool, given);
        UnaryOperator<Object> other = method.getName().equals("states") ? answers.poll() : null;
        return other == null ? answer : other.apply(answer);
      } catch (InvocationTargetException e) {
        throw e.getTargetException();
      }
    }

    void tell(GpuHealth health) {
      GpuEvent event =
          new GpuEvent.HealthChanged(Instant.EPOCH, "", TestDriver.GPU, health, "told");
      healthListeners.forEach(listener -> listener.onEvent(event));
    }
  }

  /** As after another process took the seat: no event tells that the GPU is back. */
  @Test
  void aChangeOfWhichNoEventCameIsFound() {
    DeafPool deaf = new DeafPool();
    available()
        .withBean(GpuPool.class, deaf::pool)
        .run(
            context -> {
              accept(context);
              ApplicationAvailability state = context.getBean(ApplicationAvailability.class);
              TestDriver.turn(GpuHealth.LOST, "unheard");
              await(() -> state.getReadinessState() == ReadinessState.REFUSING_TRAFFIC);
              TestDriver.turn(GpuHealth.HEALTHY, "");
              await(() -> state.getReadinessState() == ReadinessState.ACCEPTING_TRAFFIC);
              assertThat(context.getBean(VirtualGpu.class).call(() -> "back")).isEqualTo("back");
            });
  }

  @Test
  void aLookDoesNotEraseWhatAnEventToldMeanwhileAndAFailedOneIsNotTheLast() {
    DeafPool deaf = new DeafPool();
    available()
        .withBean(GpuPool.class, deaf::pool)
        .run(
            context -> {
              LostGpus lost = context.getBean(LostGpus.class);
              CompletableFuture<Boolean> stayed = new CompletableFuture<>();
              deaf.answers.add(
                  healthy -> {
                    throw new AssertionError("the seat's holder is gone");
                  });
              deaf.answers.add(
                  healthy -> {
                    deaf.tell(GpuHealth.LOST);
                    return healthy;
                  });
              deaf.answers.add(
                  healthy -> {
                    stayed.complete(!lost.isEmpty());
                    return healthy;
                  });
              assertThat(stayed.get()).isTrue();
              await(lost::isEmpty);
            });
  }
}
