package dev.vgpu.spring;

import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.micrometer.VgpuMetrics;
import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** Registers the meters of the pool, and a timer of the waits of each model's calls. */
@AutoConfiguration(after = VgpuAutoConfiguration.class)
@ConditionalOnClass({MeterRegistry.class, VgpuMetrics.class})
@ConditionalOnBean(GpuPool.class)
public class VgpuMetricsAutoConfiguration {
  /** Called by Spring. */
  public VgpuMetricsAutoConfiguration() {}

  /**
   * {@return the binder; Spring Boot binds it to the registries of the service}
   *
   * @param pool the pool to measure
   */
  @Bean(destroyMethod = "close")
  @ConditionalOnMissingBean
  public VgpuMetrics vgpuMetrics(GpuPool pool) {
    return new VgpuMetrics(pool);
  }

  /**
   * {@return the post-processor that times the calls of the models}
   *
   * @param registries where the timers are registered, if there is one registry, or a primary one
   *     among several
   */
  @Bean
  static BeanPostProcessor vgpuTimer(ObjectProvider<MeterRegistry> registries) {
    return new BeanPostProcessor() {
      @Override
      public Object postProcessAfterInitialization(Object bean, String name) {
        if (bean instanceof VirtualGpu gpu) {
          MeterRegistry registry = registries.getIfUnique();
          return registry == null ? gpu : VgpuMetrics.timed(gpu, registry);
        }
        return bean;
      }
    };
  }
}
