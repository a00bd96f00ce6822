package dev.vgpu.spring;

import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Explains in one paragraph why a virtual GPU could not be acquired, instead of a stack trace. */
final class VgpuFailureAnalyzer extends AbstractFailureAnalyzer<VgpuStartException> {
  @Override
  protected FailureAnalysis analyze(Throwable rootFailure, VgpuStartException cause) {
    return new FailureAnalysis(String.valueOf(cause.getMessage()), cause.action(), cause);
  }
}
