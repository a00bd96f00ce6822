package dev.vgpu.samples.spring;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.vgpu.VirtualGpu;
import dev.vgpu.onnxruntime.VgpuOrt;
import dev.vgpu.onnxruntime.VgpuSession;
import dev.vgpu.samples.onnx.SampleModel;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Opens a session for each model, under its virtual GPU from application.yaml. */
@Configuration(proxyBeanMethods = false)
class Models {
  /**
   * As large as makes a request take some milliseconds: of those, HTTP and JSON are a small part.
   */
  private static final int CHAT_LAYERS = 128;

  // #region sessions
  @Bean(destroyMethod = "close")
  ServedModel chat(@Qualifier("chat") VirtualGpu gpu) throws OrtException, InterruptedException {
    return served(gpu, CHAT_LAYERS);
  }

  @Bean(destroyMethod = "close")
  ServedModel ranking(@Qualifier("ranking") VirtualGpu gpu)
      throws OrtException, InterruptedException {
    return served(gpu, 4);
  }

  @Bean(destroyMethod = "close")
  ServedModel reports(@Qualifier("reports") VirtualGpu gpu)
      throws OrtException, InterruptedException {
    return served(gpu, 8);
  }

  // #endregion sessions

  private static ServedModel served(VirtualGpu gpu, int layers)
      throws OrtException, InterruptedException {
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    byte[] file = SampleModel.of(ServedModel.WIDTH, 512, layers);
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      options.setIntraOpNumThreads(1); // otherwise each session has a thread per core
      VgpuSession session = VgpuOrt.session(gpu, environment, file, options);
      ServedModel model = new ServedModel(session);
      model.warmUp();
      return model;
    }
  }
}
