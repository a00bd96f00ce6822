package dev.vgpu.samples.inference;

import dev.vgpu.GpuCapacityException;
import io.javalin.Javalin;
import io.javalin.http.ConflictResponse;
import io.javalin.http.Context;
import io.javalin.http.NotFoundResponse;
import java.util.Map;

/**
 * The routes by which {@code ./vgpu demo} drives this server. Not for copying: they let clients end
 * what runs.
 */
final class DemoRoutes {
  private final DemoPhases phases;

  DemoRoutes(DemoPhases phases) {
    this.phases = phases;
  }

  void addTo(Javalin web) {
    web.post("/demo/phase", this::start);
    web.get("/demo/phase", this::report);
    web.post(
        "/demo/calibrate",
        ctx -> ctx.json(phases.calibrate(Json.read(ctx, DemoPhases.CalibrateRequest.class))));
  }

  private void start(Context ctx) throws Exception {
    DemoPhaseRequest request = Json.read(ctx, DemoPhaseRequest.class);
    try {
      phases.start(request);
    } catch (GpuCapacityException e) {
      throw new ConflictResponse(String.valueOf(e.getMessage()));
    }
    ctx.json(Map.of("name", request.name()));
  }

  private void report(Context ctx) {
    DemoPhaseReport report = phases.report();
    if (report == null) {
      throw new NotFoundResponse("no phase was started yet");
    }
    ctx.json(report);
  }
}
