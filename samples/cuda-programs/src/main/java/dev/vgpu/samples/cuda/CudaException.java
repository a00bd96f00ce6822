package dev.vgpu.samples.cuda;

/** A call of the CUDA driver failed, or there is no driver. */
final class CudaException extends Exception {
  private static final long serialVersionUID = 1L;

  CudaException(String message) {
    super(message);
  }

  CudaException(String message, Throwable cause) {
    super(message, cause);
  }
}
