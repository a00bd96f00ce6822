package dev.vgpu.samples.spring;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Serves three models at {@code POST /models/NAME}, each under its own virtual GPU. */
@SpringBootApplication
public class ModelService {
  /** Called by Spring. */
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
