package dev.vgpu.samples.spring;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Three models behind {@code POST /models/NAME}, a virtual GPU each. */
@SpringBootApplication
public class ModelService {
  /** Makes one; Spring does. */
  public ModelService() {}

  /**
   * Runs the service until it is asked to end.
   *
   * @param args properties, such as {@code --server.port=8081}
   */
  public static void main(String[] args) {
    SpringApplication.run(ModelService.class, args);
  }
}
