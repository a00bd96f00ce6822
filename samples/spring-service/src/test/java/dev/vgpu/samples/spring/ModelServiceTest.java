package dev.vgpu.samples.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuDriverException;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.VirtualGpu;
import dev.vgpu.onnxruntime.VgpuOrt;
import dev.vgpu.samples.onnx.SampleModel;
import dev.vgpu.spi.ForwardingVirtualGpu;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.annotation.BeanFactoryAnnotationUtils;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.web.server.ResponseStatusException;

/** Tests the service as it is started, and the batch job beside it. */
class ModelServiceTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final HttpClient CLIENT = HttpClient.newHttpClient();
  private static final Pattern DONE = Pattern.compile("rows=(\\d+) sum=(\\S+) preempted=(\\d+)");

  @TempDir private static Path runDirectory;
  private static ConfigurableApplicationContext service;
  private static String url;

  @BeforeAll
  static void start() {
    service =
        SpringApplication.run(
            ModelService.class, "--server.port=0", "--vgpu.pool.run-directory=" + runDirectory);
    url = "http://127.0.0.1:" + service.getEnvironment().getProperty("local.server.port");
  }

  @AfterAll
  static void stop() {
    service.close();
  }

  private static HttpResponse<String> get(String path) throws Exception {
    return CLIENT.send(
        HttpRequest.newBuilder(URI.create(url + path)).build(),
        HttpResponse.BodyHandlers.ofString());
  }

  private static HttpResponse<String> post(String model, float[][] rows) throws Exception {
    return CLIENT.send(
        HttpRequest.newBuilder(URI.create(url + "/models/" + model))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(rows)))
            .build(),
        HttpResponse.BodyHandlers.ofString());
  }

  private static JsonNode lease(String name) throws Exception {
    for (JsonNode lease : JSON.readTree(get("/actuator/vgpu").body()).get("leases")) {
      if (lease.get("name").asText().equals(name)) {
        return lease;
      }
    }
    return JSON.missingNode();
  }

  @ParameterizedTest
  @ValueSource(strings = {"chat", "ranking", "reports"})
  void eachModelAnswersUnderItsOwnVirtualGpu(String name) throws Exception {
    long before = lease(name).get("calls").asLong();

    HttpResponse<String> answer = post(name, new float[3][ServedModel.WIDTH]);

    assertThat(answer.statusCode()).isEqualTo(200);
    float[][] scores = JSON.readValue(answer.body(), float[][].class);
    assertThat(scores).hasDimensions(3, ServedModel.WIDTH);
    assertThat(scores[0]).isEqualTo(scores[2]);
    assertThat(lease(name).get("calls").asLong()).isEqualTo(before + 1);
  }

  @ParameterizedTest
  @CsvSource({"chat,0,32,400", "chat,257,32,400", "chat,1,31,400", "nobody,1,32,404"})
  void whatCannotBeScoredIsRefused(String name, int rows, int width, int status) throws Exception {
    assertThat(post(name, new float[rows][width]).statusCode()).isEqualTo(status);
  }

  @Test
  void aRequestOfALostGpuIsAnswered503WithTheReason() throws Exception {
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    byte[] file = SampleModel.of(ServedModel.WIDTH, 16, 1);
    LosableGpu gpu =
        new LosableGpu(
            BeanFactoryAnnotationUtils.qualifiedBeanOfType(
                service.getBeanFactory(), VirtualGpu.class, "chat"));
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions();
        ServedModel model = new ServedModel(VgpuOrt.session(gpu, environment, file, options))) {
      ModelController controller = new ModelController(Map.of("chat", model));
      gpu.isLost = true;
      assertThatThrownBy(() -> controller.score("chat", new float[1][ServedModel.WIDTH]))
          .isInstanceOf(ResponseStatusException.class)
          .hasMessageContaining("503")
          .hasMessageContaining("the GPU is lost");
    }
  }

  /** Answers calls as the starter does, while the GPU is lost. */
  private static final class LosableGpu extends ForwardingVirtualGpu {
    private volatile boolean isLost;

    LosableGpu(VirtualGpu beneath) {
      super(beneath);
    }

    private void check() {
      if (isLost) {
        throw new GpuDriverException("the GPU is lost: fell off the bus", null);
      }
    }

    @Override
    public <T extends @Nullable Object> T call(Callable<? extends T> call, CallOptions options)
        throws Exception {
      check();
      return super.call(call, options);
    }

    @Override
    public <T extends @Nullable Object> T call(
        PreemptibleCall<? extends T> call, CallOptions options) throws Exception {
      check();
      return super.call(call, options);
    }
  }

  @Test
  void itIsReadyAndAliveAndPrometheusSeesEachModel() throws Exception {
    assertThat(get("/actuator/health/readiness").body()).contains("UP");
    assertThat(get("/actuator/health/liveness").body()).contains("UP");
    String scrape = get("/actuator/prometheus").body();
    assertThat(scrape)
        .containsPattern("vgpu_memory_quota_bytes\\{.*name=\"chat\".*} 5.36870912E8")
        .containsPattern("vgpu_share_entitled_ratio\\{.*name=\"ranking\".*} 0.3")
        .containsPattern("vgpu_calls_total\\{.*name=\"reports\".*} ")
        .containsPattern("vgpu_wait_seconds_count\\{.*name=\"chat\".*} ");
  }

  /** The job is another process of this node; it meets the service in the run directory. */
  @Test
  void aBatchJobGivesWayToTheServiceAndEndsWithItsResult() throws Exception {
    ProcessBuilder command =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                "dev.vgpu.samples.onnx.BatchJob",
                "10000")
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    command.environment().put("VGPU_RUN_DIR", runDirectory.toString());
    command.environment().put("ORT_DISABLE_TELEMETRY", "1"); // else a long class path crashes it
    Process job = command.start();
    try {
      while (job.isAlive() && lease("batch-job").path("preemptions").asLong() == 0) {
        assertThat(post("chat", new float[64][ServedModel.WIDTH]).statusCode()).isEqualTo(200);
      }
      String output = new String(job.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(job.waitFor()).as(output).isZero();
      Matcher done = DONE.matcher(output);
      assertThat(done.find()).as(output).isTrue();
      assertThat(done.group(1)).isEqualTo("10000");
      assertThat(Double.parseDouble(done.group(2))).isPositive();
      assertThat(Long.parseLong(done.group(3))).isPositive();
    } finally {
      job.destroyForcibly();
    }
  }

  @Test
  void theLoadReplaysATraceAloneAndBesideABatchJob() throws Exception {
    ProcessBuilder command =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                Load.class.getName(),
                "../../vgpu-simulation/src/main/resources/dev/vgpu/simulation/trace/"
                    + "azure_llm_2023_conv_1840-1848.csv",
                "1",
                "1",
                url)
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    command.environment().put("VGPU_RUN_DIR", runDirectory.toString());
    command.environment().put("ORT_DISABLE_TELEMETRY", "1"); // else a long class path crashes it
    Process load = command.start();
    try {
      String output = new String(load.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(load.waitFor()).as(output).isZero();
      assertThat(output)
          .containsPattern("chat alone +[1-9]\\d* answered, 0 failed, [1-9]\\d* % of the GPU, p50 ")
          .containsPattern("chat beside the job +[1-9]\\d* answered, 0 failed, ")
          .containsPattern("chat alone again +[1-9]\\d* answered, 0 failed, ")
          .containsPattern("chat beside the job, uncontrolled +[1-9]\\d* answered, 0 failed, ")
          .containsPattern("p99 to that alone: beside the job \\d\\S* \\(.*, uncontrolled \\d")
          .containsPattern("job: [1-9]\\d* batches/s alone, \\d+ beside chat: \\d+ % of what chat")
          .containsPattern("the GPU's time beside the job: chat [1-9]\\d* %, finished batches \\d");
    } finally {
      load.destroyForcibly();
    }
  }

  @Test
  void aRefusedRequestEndsTheCalibrationWithItsAnswer() throws Exception {
    ReplayTrace trace = new ReplayTrace(List.of(new ReplayTrace.Request(0, 257)));
    try (ChatClient chat = new ChatClient(URI.create(url), Duration.ofSeconds(10))) {
      assertThatThrownBy(() -> chat.calibrate(trace))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("answers 400");
    }
  }
}
