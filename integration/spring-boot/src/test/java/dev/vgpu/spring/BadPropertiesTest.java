package dev.vgpu.spring;

import static dev.vgpu.spring.ModelsTest.service;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuCapacityException;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.context.annotation.Configuration;

/** What is asked wrongly fails the start, with words that name the property and what to do. */
class BadPropertiesTest {
  private static FailureAnalysis analysis(String... properties) {
    FailureAnalysis[] found = new FailureAnalysis[1];
    service(properties)
        .run(
            context -> {
              assertThat(context).hasFailed();
              found[0] = new VgpuFailureAnalyzer().analyze(context.getStartupFailure());
            });
    assertThat(found[0]).as("an analysis of the failure").isNotNull();
    return found[0];
  }

  @Test
  void aShareAboveAHundred() {
    FailureAnalysis analysis = analysis("vgpu.models.big.share=101", "vgpu.models.big.memory=1GiB");

    assertThat(analysis.getDescription())
        .contains("'big'")
        .contains("1 to 100")
        .contains("computePercent=101");
    assertThat(analysis.getAction()).isEqualTo("Change vgpu.models.big.share.");
  }

  @Test
  void memoryThatDoesNotFitNamesWhatIsFreeAndWhoHoldsTheRest() {
    FailureAnalysis analysis =
        analysis("vgpu.models.first.memory=60GiB", "vgpu.models.second.memory=8GiB");

    assertThat(analysis.getDescription())
        .contains("second")
        .contains("first")
        .contains("8GiB")
        .contains("4GiB")
        .doesNotContain("\n");
    assertThat(analysis.getAction()).contains("vgpu.models.second.memory");
    assertThat(analysis.getCause()).hasRootCauseInstanceOf(GpuCapacityException.class);
  }

  @Test
  void memoryThatNoGpuHas() {
    FailureAnalysis analysis = analysis("vgpu.models.huge.memory=65GiB");

    assertThat(analysis.getDescription()).contains("'huge'").contains("65GiB");
  }

  @Test
  void sharesThatAreTogetherAboveAHundred() {
    FailureAnalysis analysis =
        analysis(
            "vgpu.models.a.share=70",
            "vgpu.models.a.memory=1GiB",
            "vgpu.models.b.share=40",
            "vgpu.models.b.memory=1GiB");

    assertThat(analysis.getDescription()).contains("40").contains("30");
    assertThat(analysis.getAction()).contains("share");
  }

  @Test
  void memoryIsNotSet() {
    FailureAnalysis analysis = analysis("vgpu.models.m.share=10");

    assertThat(analysis.getDescription()).contains("'m'").contains("memory");
    assertThat(analysis.getAction()).contains("vgpu.models.m.memory");
  }

  @Test
  void memoryThatIsNoSize() {
    assertThat(analysis("vgpu.models.m.memory=plenty").getDescription())
        .contains("plenty")
        .contains("4GiB");
  }

  @Test
  void aPolicyThatNeedsAShare() {
    FailureAnalysis analysis =
        analysis("vgpu.models.m.memory=1GiB", "vgpu.models.m.policy=fixed-share");

    assertThat(analysis.getDescription()).contains("FIXED_SHARE");
  }

  @Test
  void twoModelsOfOneName() {
    FailureAnalysis analysis =
        analysis("vgpu.models.Embed.memory=1GiB", "vgpu.models.embed.memory=1GiB");

    assertThat(analysis.getDescription()).contains("'Embed'").contains("'embed'");
    assertThat(analysis.getAction()).contains("Rename");
  }

  @Test
  void twoModelsWhoseNamesDifferInDashesAlone() {
    FailureAnalysis analysis =
        analysis("vgpu.models.re-rank.memory=1GiB", "vgpu.models.r-erank.memory=1GiB");

    assertThat(analysis.getDescription()).contains("'re-rank'").contains("'r-erank'");
    assertThat(analysis.getAction()).contains("Rename");
  }

  @Test
  void aNameThatIsNone() {
    assertThat(analysis("vgpu.models[a b].memory=1GiB").getDescription()).contains("'a b'");
  }

  @Test
  void anOptionOfThePoolOutOfRange() {
    FailureAnalysis analysis = analysis("vgpu.pool.offline-floor-percent=300");

    assertThat(analysis.getDescription()).contains("300");
    assertThat(analysis.getAction()).contains("vgpu.pool.offline-floor-percent");
  }

  @Test
  void anUnknownPropertyIsNamed() {
    service("vgpu.models.m.memory=1GiB", "vgpu.models.m.shares=10")
        .run(
            context -> {
              assertThat(context).hasFailed();
              assertThat(context.getStartupFailure())
                  .hasStackTraceContaining("vgpu.models.m.shares");
            });
  }

  @Test
  void aClassThatIsNoneIsNamedWithThoseThatAre() {
    service("vgpu.models.m.memory=1GiB", "vgpu.models.m.class=batch")
        .run(
            context ->
                assertThat(context.getStartupFailure())
                    .hasStackTraceContaining("vgpu.models.m.class"));
  }

  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  static class Service {}

  /** What a person sees who starts the service: what is wrong, what to do, and no stack trace. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "vgpu.models.m.share=200   | Model 'm' gets no virtual GPU | Change vgpu.models.m.share.",
        "vgpu.models.x.memory=65GiB| Model 'x' gets no virtual GPU | Change the properties of vgpu.models.x",
        "vgpu.models.M.memory=1GiB | has the same name but for case | Rename one of the two",
        "vgpu.models.m.shares=20   | vgpu.models.m.shares           | Update your application",
        "vgpu.models.m.class=batch | vgpu.models.m.class            | OFFLINE",
        "vgpu.pool.sharing=never   | vgpu.pool.sharing              | STRICT",
      })
  void theStartPrintsAParagraphAndNoStackTrace(String property, String problem, String action) {
    SpringApplication application = new SpringApplication(Service.class);
    application.setWebApplicationType(WebApplicationType.NONE);
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    PrintStream before = System.out;
    System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
    try {
      assertThatThrownBy(
              () ->
                  application.run(
                      "--vgpu.pool.scope=this-jvm",
                      "--vgpu.models.m.memory=1GiB",
                      "--" + property))
          .isInstanceOf(RuntimeException.class);
    } finally {
      System.setOut(before);
    }

    assertThat(printed.toString(StandardCharsets.UTF_8))
        .contains("APPLICATION FAILED TO START")
        .contains(problem)
        .contains(action)
        .doesNotContain("\tat ");
  }
}
