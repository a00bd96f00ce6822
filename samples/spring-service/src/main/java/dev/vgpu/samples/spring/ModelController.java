package dev.vgpu.samples.spring;

import ai.onnxruntime.OrtException;
import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuTimeoutException;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** {@code POST /models/NAME}: rows in, scores out. */
@RestController
class ModelController {
  private final Map<String, ServedModel> models;

  ModelController(Map<String, ServedModel> models) {
    this.models = models;
  }

  @PostMapping("/models/{name}")
  float[][] score(@PathVariable String name, @RequestBody float[][] rows)
      throws OrtException, InterruptedException {
    ServedModel model = models.get(name);
    if (model == null) {
      throw new ResponseStatusException(HttpStatus.NOT_FOUND, "no such model");
    }
    check(rows);
    try {
      return model.score(rows);
    } catch (GpuTimeoutException e) {
      throw new ResponseStatusException(HttpStatus.SERVICE_UNAVAILABLE, "no turn in time", e);
    } catch (GpuDriverException e) { // the GPU is lost: the service is not ready until it is back
      throw new ResponseStatusException(HttpStatus.SERVICE_UNAVAILABLE, e.getMessage(), e);
    }
  }

  private static void check(float[][] rows) {
    if (rows.length == 0 || rows.length > ServedModel.MOST_ROWS) {
      throw new ResponseStatusException(
          HttpStatus.BAD_REQUEST, "not 1 to " + ServedModel.MOST_ROWS + " rows");
    }
    for (float[] row : rows) {
      if (row == null || row.length != ServedModel.WIDTH) {
        throw new ResponseStatusException(
            HttpStatus.BAD_REQUEST, "a row has not " + ServedModel.WIDTH + " values");
      }
    }
  }
}
