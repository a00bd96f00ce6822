/** Meters of pools, virtual GPUs and devices for Micrometer. */
@SuppressWarnings({
  "requires-automatic",
  "requires-transitive-automatic"
}) // Micrometer has no descriptor.
module dev.vgpu.micrometer {
  requires static org.jspecify;
  requires transitive dev.vgpu;
  requires transitive micrometer.core;

  exports dev.vgpu.micrometer;
}
