package com.example.outside;

import ai.djl.engine.Engine;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.NoBatchifyTranslator;
import ai.djl.translate.TranslatorContext;
import ai.onnx.proto.OnnxMl.ModelProto;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;
import dev.vgpu.CallOptions;
import dev.vgpu.request.MemorySize;
import dev.vgpu.VirtualGpu;
import dev.vgpu.djl.VgpuDjl;
import dev.vgpu.micrometer.VgpuMetrics;
import dev.vgpu.onnxruntime.VgpuOrt;
import dev.vgpu.onnxruntime.VgpuSession;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.tribuo.util.onnx.ONNXContext;
import org.tribuo.util.onnx.ONNXOperators;

/**
 * A service with a model in ONNX Runtime and one in DJL, each under its virtual GPU, with meters and the
 * dashboard.
 */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
public class OutsideService {
  private static final String[] PROPERTIES = {
    "--vgpu.pool.scope=this-jvm",
    "--vgpu.models.ort.class=online",
    "--vgpu.models.ort.share=50",
    "--vgpu.models.ort.memory=64MiB",
    "--vgpu.models.djl.class=offline",
    "--vgpu.models.djl.memory=64MiB",
    "--vgpu.dashboard.enabled=true",
  };

  /** Called by Spring. */
  public OutsideService() {}

  /** {@return the registry of the service} */
  @Bean
  public MeterRegistry registry() {
    return new SimpleMeterRegistry();
  }

  /**
   * Starts the service, asks each model once, and prints the answers and the meters.
   *
   * @param args none
   * @throws Exception if a model cannot be run
   */
  public static void main(String[] args) throws Exception {
    System.setProperty("OPT_OUT_TRACKING", "true");
    System.setProperty("ai.djl.offline", "true");
    Engine.getEngine("OnnxRuntime"); // it must be the first to use ONNX Runtime
    Path file = Files.createTempFile("sum", ".onnx");
    int port = freePort();
    System.setProperty("vgpu.dashboard.port", Integer.toString(port));
    try (ConfigurableApplicationContext context =
        SpringApplication.run(OutsideService.class, PROPERTIES)) {
      Files.write(file, sumOfThree());
      MeterRegistry registry = context.getBean(MeterRegistry.class);
      context.getBean(VgpuMetrics.class).bindTo(registry);

      System.out.println("ort=" + ort(context.getBean("vgpu-ort", VirtualGpu.class), file));
      System.out.println("djl=" + djl(context.getBean("vgpu-djl", VirtualGpu.class), file));
      System.out.println("dashboard=" + dashboard(port));
      for (String model : List.of("ort", "djl")) {
        System.out.println(
            model
                + " quota="
                + registry.get("vgpu.memory.quota").tag("name", model).gauge().value()
                + " calls="
                + registry.get("vgpu.wait").tag("name", model).timer().count());
      }
    } finally {
      Files.deleteIfExists(file);
    }
  }

  private static int freePort() throws Exception {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private static int dashboard(int port) throws Exception {
    HttpRequest page = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/")).build();
    return HttpClient.newHttpClient()
        .send(page, HttpResponse.BodyHandlers.discarding())
        .statusCode();
  }

  private static float ort(VirtualGpu gpu, Path file) throws Exception {
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions();
        VgpuSession session = VgpuOrt.session(gpu, environment, file, options);
        OnnxTensor row = OnnxTensor.createTensor(environment, new float[][] {{1, 2, 3}});
        OrtSession.Result result = session.run(Map.of("row", row))) {
      return ((float[][]) result.get(0).getValue())[0][0];
    }
  }

  private static float djl(VirtualGpu gpu, Path file) throws Exception {
    Criteria<float[], Float> criteria =
        Criteria.builder()
            .setTypes(float[].class, Float.class)
            .optModelPath(file)
            .optEngine("OnnxRuntime")
            .optTranslator(new RowSum())
            .build();
    MemorySize weights = MemorySize.ofMebibytes(16);
    try (ZooModel<float[], Float> model =
            VgpuDjl.load(gpu, criteria, weights, CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor()) {
      return predictor.predict(new float[] {4, 5, 6});
    }
  }

  private static final class RowSum implements NoBatchifyTranslator<float[], Float> {
    @Override
    public NDList processInput(TranslatorContext context, float[] row) {
      return new NDList(context.getNDManager().create(row, new Shape(1, row.length)));
    }

    @Override
    public Float processOutput(TranslatorContext context, NDList output) {
      return output.singletonOrThrow().toFloatArray()[0];
    }
  }

  private static byte[] sumOfThree() {
    ONNXContext graph = new ONNXContext();
    graph.setName("sum");
    graph.assignTo(
        graph
            .floatInput("row", 3)
            .apply(
                ONNXOperators.GEMM,
                graph.floatTensor(
                    "ones", List.of(3, 1), to -> to.put(new float[] {1, 1, 1}).flip())),
        graph.floatOutput("sum", 1));
    return ModelProto.newBuilder()
        .setIrVersion(6)
        .addOpsetImport(ONNXOperators.getOpsetProto())
        .setGraph(graph.buildGraph())
        .build()
        .toByteArray();
  }
}
