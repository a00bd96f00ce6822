package dev.vgpu.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.env.SystemEnvironmentPropertySource;

class ModelsTest {
  static ApplicationContextRunner service(String... properties) {
    return new ApplicationContextRunner()
        .withConfiguration(
            AutoConfigurations.of(VgpuAutoConfiguration.class, VgpuMetricsAutoConfiguration.class))
        .withPropertyValues("vgpu.pool.scope=this-jvm")
        .withPropertyValues(properties);
  }

  record Served(VirtualGpu embed, VirtualGpu rank) {}

  @Configuration(proxyBeanMethods = false)
  static class Service {
    // #region models
    @Bean
    Served served(@Qualifier("embed") VirtualGpu embed, @Qualifier("re-rank") VirtualGpu rank) {
      return new Served(embed, rank);
    }

    // #endregion models

    /** A bean of a model's name is no trouble. */
    @Bean
    String embed() {
      return "embed";
    }
  }

  @Configuration(proxyBeanMethods = false)
  static class OwnPool {
    static final GpuPoolOptions OPTIONS =
        GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build();

    @Bean
    GpuPool ownPool() {
      return GpuPool.open(OPTIONS);
    }
  }

  @Test
  void eachModelGetsItsVirtualGpuByItsName() {
    service(
            "vgpu.models.embed.share=40",
            "vgpu.models.embed.memory=2GiB",
            "vgpu.models.embed.policy=fixed-share",
            "vgpu.models.embed.class=online",
            "vgpu.models.embed.max-concurrent-calls=3",
            "vgpu.models.re-rank.memory=512MiB",
            "vgpu.models.re-rank.class=offline")
        .withUserConfiguration(Service.class)
        .run(
            context -> {
              Served served = context.getBean(Served.class);
              VirtualGpuRequest embed = served.embed().request();
              assertThat(embed.name()).isEqualTo("embed");
              assertThat(embed.computePercent()).hasValue(40);
              assertThat(embed.memory()).isEqualTo(MemorySize.ofGibibytes(2));
              assertThat(embed.policy()).isEqualTo(SharePolicy.FIXED_SHARE);
              assertThat(embed.preemptionClass()).isEqualTo(PreemptionClass.ONLINE);
              assertThat(embed.maxConcurrentCalls()).isEqualTo(3);
              VirtualGpuRequest rank = served.rank().request();
              assertThat(rank.policy()).isEqualTo(SharePolicy.BEST_EFFORT);
              assertThat(rank.preemptionClass()).isEqualTo(PreemptionClass.OFFLINE);
              assertThat(served.rank().call(() -> "run")).isEqualTo("run");
            });
  }

  /** Spring takes the variable for a property of {@code re-rank}, and for that of a model. */
  @Test
  void anEnvironmentVariableSetsAPropertyOfAModelWithADash() {
    Map<String, Object> variables = Map.of("VGPU_MODELS_RERANK_MEMORY", "3GiB");
    service("vgpu.models.re-rank.memory=1GiB", "vgpu.models.re-rank.share=10")
        .withInitializer(
            context ->
                context
                    .getEnvironment()
                    .getPropertySources()
                    .addFirst(
                        new SystemEnvironmentPropertySource("test-systemEnvironment", variables)))
        .run(
            context -> {
              assertThat(context).hasSingleBean(VirtualGpu.class).hasBean("vgpu-re-rank");
              VirtualGpuRequest request = context.getBean(VirtualGpu.class).request();
              assertThat(request.memory()).isEqualTo(MemorySize.ofGibibytes(3));
              assertThat(request.computePercent()).hasValue(10);
            });
  }

  @Test
  void aNameWithADotIsInBrackets() {
    service("vgpu.models[llama-3.1].memory=1GiB")
        .run(context -> assertThat(context).hasBean("vgpu-llama-3.1"));
  }

  @Test
  void aShareWithoutAPolicyBursts() {
    service("vgpu.models.m.share=10", "vgpu.models.m.memory=1GiB")
        .run(
            context ->
                assertThat(context.getBean(VirtualGpu.class).request().policy())
                    .isEqualTo(SharePolicy.BURST_SHARE));
  }

  @Test
  void everythingIsGivenBackAtTheEnd() {
    VirtualGpu[] seen = new VirtualGpu[1];
    service("vgpu.models.m.memory=1GiB")
        .run(context -> seen[0] = context.getBean(VirtualGpu.class));

    assertThat(seen[0].isClosed()).isTrue();
    try (GpuPool pool = GpuPool.open(OwnPool.OPTIONS)) {
      assertThat(pool.leases()).isEmpty();
    }
  }

  /** Fails the start while a call runs, which ends only once its virtual GPU is closed. */
  private static final class Failing implements SmartLifecycle {
    private final VirtualGpu gpu;
    private final CompletableFuture<String> call;

    Failing(VirtualGpu gpu, CompletableFuture<String> call) {
      this.gpu = gpu;
      this.call = call;
    }

    @Override
    public void start() {
      CountDownLatch inside = new CountDownLatch(1);
      CompletableFuture<Boolean> running =
          gpu.submit(
              () -> {
                inside.countDown();
                while (!gpu.isClosed()) {
                  Thread.onSpinWait();
                }
                return call.complete("done");
              });
      try {
        inside.await();
      } catch (InterruptedException e) {
        running.cancel(true);
      }
      throw new IllegalStateException("the port is in use");
    }

    @Override
    public void stop() {}

    @Override
    public boolean isRunning() {
      return false;
    }
  }

  /** Beans go after a failed start as at an end, though the context is not closed. */
  @Test
  void aFailedStartWaitsForTheRunningCallBeforeItDestroysBeans() {
    CompletableFuture<String> call = new CompletableFuture<>();
    boolean[] endedBeforeBeansWent = new boolean[1];
    service("vgpu.models.m.memory=1GiB")
        .withBean(
            "session", AutoCloseable.class, () -> () -> endedBeforeBeansWent[0] = call.isDone())
        .withInitializer(
            context ->
                ((GenericApplicationContext) context)
                    .registerBean(
                        SmartLifecycle.class,
                        () -> new Failing(context.getBean(VirtualGpu.class), call)))
        .run(context -> assertThat(context).hasFailed());

    assertThat(endedBeforeBeansWent[0]).isTrue();
  }

  @Test
  void aPoolOfTheApplicationTakesThePlaceOfOurs() {
    service("vgpu.models.m.memory=1GiB")
        .withUserConfiguration(OwnPool.class)
        .run(
            context -> {
              assertThat(context).hasSingleBean(GpuPool.class).hasBean("ownPool");
              assertThat(context.getBean("ownPool", GpuPool.class).leases()).hasSize(1);
            });
  }

  @Test
  void theOptionsOfThePoolAreTaken() {
    service("vgpu.pool.longest-turn=7ms", "vgpu.models.m.memory=1GiB")
        .run(
            context ->
                assertThat(context.getBean(GpuPool.class).states().get(0).turnLength().toMillis())
                    .isLessThanOrEqualTo(7));
  }

  @Test
  void switchedOffThereIsNothing() {
    service("vgpu.enabled=false", "vgpu.models.m.memory=1GiB")
        .run(
            context ->
                assertThat(context)
                    .hasNotFailed()
                    .doesNotHaveBean(GpuPool.class)
                    .doesNotHaveBean(VirtualGpu.class));
  }

  @Test
  void editorsAreToldOfTheProperties() throws IOException {
    assertThat(metadata())
        .contains("\"vgpu.pool.offline-floor-percent\"")
        .contains("\"vgpu.models\"")
        .containsIgnoringCase("offline models get, 0 to 100 percent");
  }

  /** Of all jars: the frameworks' have theirs. */
  static String metadata() throws IOException {
    StringBuilder all = new StringBuilder();
    var found =
        VgpuProperties.class
            .getClassLoader()
            .getResources("META-INF/spring-configuration-metadata.json");
    while (found.hasMoreElements()) {
      try (InputStream in = found.nextElement().openStream()) {
        all.append(new String(in.readAllBytes(), StandardCharsets.UTF_8));
      }
    }
    return all.toString();
  }
}
