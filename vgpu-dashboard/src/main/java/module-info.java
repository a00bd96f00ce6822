/** A web page that shows which tenants use the GPUs of a pool, and why tenants wait. */
@SuppressWarnings("module") // The command's module is built after this one.
module dev.vgpu.dashboard {
  requires static org.jspecify;
  requires transitive dev.vgpu;
  requires jdk.httpserver;
  requires org.slf4j;

  exports dev.vgpu.dashboard;
  // The command's other listeners use these threads too; not part of the API.
  exports dev.vgpu.dashboard.http to
      dev.vgpu.cli;
}
