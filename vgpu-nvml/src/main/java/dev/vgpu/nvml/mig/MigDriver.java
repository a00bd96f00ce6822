package dev.vgpu.nvml.mig;

import dev.vgpu.GpuDriverException;
import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.nvml.NvmlSession;
import dev.vgpu.nvml.OpenNvml;
import dev.vgpu.nvml.binding.NativeCalls;
import dev.vgpu.nvml.binding.Nvml;
import dev.vgpu.nvml.binding.NvmlMig;
import dev.vgpu.nvml.binding.NvmlTypes;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.GpuId;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * MIG through NVML. Each method looks up its GPU by UUID and keeps no handle. NVML may be restarted
 * between two calls, because a reloaded driver does not answer a process that still has NVML open.
 * Safe for use by several threads.
 */
public final class MigDriver implements AutoCloseable {
  private static final int MOST_DEVICES = 1_024;
  private static final int MOST_LOOKS = 3;
  private static final int MOST_INSTANCES = 64;

  private final NvmlProvider provider;
  private final Runnable end = this::end;
  private final ByteBuffer number = NativeCalls.memory(Long.BYTES);
  private final ByteBuffer pending = NativeCalls.memory(Long.BYTES);
  private final Map<GpuId, MigGeometry> geometries = new HashMap<>();

  /** Null while NVML is closed; the next call opens it. */
  private @Nullable NvmlSession session;

  private Nvml nvml;
  private NvmlMig mig;
  private boolean closed;

  /** The last error of a look after which it is not known what exists; else success. */
  private int unclear;

  private MigDriver(NvmlProvider provider) {
    this.provider = provider;
    NvmlSession opened = provider.session();
    this.session = opened;
    this.nvml = opened.nvml();
    this.mig = new NvmlMig(nvml);
  }

  /**
   * {@return MIG through the NVML that also finds the GPUs}
   *
   * @throws GpuDriverException if there is no NVML, or it does not answer
   */
  public static MigDriver open() {
    return of(new NvmlProvider());
  }

  static MigDriver of(NvmlProvider provider) {
    MigDriver driver = new MigDriver(provider);
    OpenNvml.add(driver.end);
    return driver;
  }

  private synchronized void end() {
    NvmlSession held = session;
    session = null;
    geometries.clear();
    if (held != null) {
      held.close();
    }
  }

  private void begin() {
    if (closed) {
      throw new IllegalStateException("closed");
    }
    if (session == null) {
      NvmlSession opened = provider.session();
      session = opened;
      nvml = opened.nvml();
      mig = new NvmlMig(nvml);
    }
  }

  private void check(int code, String what) {
    if (code != Nvml.NVML_SUCCESS) {
      if (NvmlSession.isGone(code)) {
        end();
      }
      throw failed(code, what);
    }
  }

  private GpuDriverException failed(int code, String what) {
    String text = nvml.nvmlErrorString(code);
    String then =
        code == NvmlTypes.NVML_ERROR_NO_PERMISSION ? " (only root may, with CAP_SYS_ADMIN)" : "";
    return new GpuDriverException(what + " failed: " + (text == null ? "?" : text) + then, code);
  }

  private long device(GpuId gpu) {
    int code = Objects.requireNonNull(session).lookUp(gpu, number);
    check(code, "nvmlDeviceGetHandleByUUID " + gpu);
    return number.getLong(0);
  }

  // ---- queries

  /**
   * {@return all GPUs, also those without MIG; a GPU that does not answer is left out}
   *
   * @throws GpuDriverException if the driver fails, or no GPU answers
   */
  public synchronized List<MigState> gpus() {
    begin();
    check(nvml.nvmlDeviceGetCount_v2(number), "nvmlDeviceGetCount_v2");
    int count = Math.max(0, Math.min(MOST_DEVICES, number.getInt(0)));
    List<MigState> states = new ArrayList<>();
    GpuDriverException failure = null;
    for (int i = 0; i < count; i++) {
      try {
        begin();
        check(nvml.nvmlDeviceGetHandleByIndex_v2(i, number), "nvmlDeviceGetHandleByIndex_v2");
        states.add(state(number.getLong(0)));
      } catch (GpuDriverException e) {
        failure = e;
      }
    }
    if (failure != null && states.isEmpty()) {
      throw failure;
    }
    return states;
  }

  /**
   * {@return one GPU}
   *
   * @param gpu which GPU
   * @throws GpuDriverException if the driver fails, or does not know the GPU
   */
  public synchronized MigState gpu(GpuId gpu) {
    begin();
    return state(device(gpu));
  }

  private MigState state(long device) {
    GpuId gpu = new GpuId(uuid(device));
    ByteBuffer text = NativeCalls.memory(Nvml.NVML_DEVICE_NAME_V2_BUFFER_SIZE);
    check(nvml.nvmlDeviceGetName(device, text, text.capacity() - 1), "nvmlDeviceGetName");
    String model = NativeCalls.text(text);
    number.putInt(0, 0);
    pending.putInt(0, 0);
    int code = nvml.nvmlDeviceGetMigMode(device, number, pending);
    if (code == Nvml.NVML_ERROR_NOT_SUPPORTED || code == Nvml.NVML_ERROR_FUNCTION_NOT_FOUND) {
      return new MigState(gpu, model, false, false, Optional.empty(), List.of());
    }
    check(code, "nvmlDeviceGetMigMode");
    boolean on = number.getInt(0) == Nvml.NVML_DEVICE_MIG_ENABLE;
    boolean willBe = pending.getInt(0) == Nvml.NVML_DEVICE_MIG_ENABLE;
    MigGeometry geometry = geometry(gpu, device);
    List<MigState.Instance> instances =
        on && geometry != null ? instances(device, geometry) : List.of();
    return new MigState(gpu, model, on, willBe, Optional.ofNullable(geometry), instances);
  }

  private String uuid(long device) {
    ByteBuffer text = NativeCalls.memory(Nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE);
    check(nvml.nvmlDeviceGetUUID(device, text, text.capacity() - 1), "nvmlDeviceGetUUID");
    return NativeCalls.text(text);
  }

  // ---- geometry: constant while the driver runs

  private @Nullable MigGeometry geometry(GpuId gpu, long device) {
    MigGeometry known = geometries.get(gpu);
    if (known == null) {
      known = new MigGeometryReader(mig, code -> check(code, "reading MIG profiles")).read(device);
      if (known != null) {
        geometries.put(gpu, known);
      }
    }
    return known;
  }

  // ---- instances

  /** An error does not mean that an instance is absent: it may be gone at another try. */
  private List<MigState.Instance> instances(long device, MigGeometry geometry) {
    List<MigState.Instance> found;
    int looks = 0;
    do {
      unclear = Nvml.NVML_SUCCESS;
      found = found(device, geometry);
    } while (unclear != Nvml.NVML_SUCCESS && ++looks < MOST_LOOKS);
    check(unclear, "reading the MIG instances");
    return found;
  }

  /** {@return whether it exists} Remembers an error that says neither. */
  private boolean isThere(int code) {
    if (code != Nvml.NVML_SUCCESS
        && code != Nvml.NVML_ERROR_NOT_FOUND
        && code != Nvml.NVML_ERROR_NOT_SUPPORTED
        && code != Nvml.NVML_ERROR_FUNCTION_NOT_FOUND) {
      unclear = code;
    }
    return code == Nvml.NVML_SUCCESS;
  }

  private List<MigState.Instance> found(long device, MigGeometry geometry) {
    Map<Integer, List<MigState.Part>> parts = parts(device);
    List<MigState.Instance> instances = new ArrayList<>();
    for (MigProfile profile : geometry.profiles()) {
      ByteBuffer handles = NativeCalls.memory(MOST_INSTANCES * Long.BYTES);
      check(
          mig.nvmlDeviceGetGpuInstances(device, profile.id(), handles, number),
          "nvmlDeviceGetGpuInstances");
      int count = Math.max(0, Math.min(MOST_INSTANCES, number.getInt(0)));
      for (int i = 0; i < count; i++) {
        ByteBuffer info = NativeCalls.memory(NvmlMig.GPU_INSTANCE_BYTES);
        long handle = handles.getLong(i * Long.BYTES);
        if (!isThere(mig.nvmlGpuInstanceGetInfo(handle, info))) {
          continue; // destroyed in between
        }
        int id = info.getInt(NvmlMig.GPU_INSTANCE_ID);
        int at = NvmlMig.GPU_INSTANCE_PLACEMENT;
        instances.add(
            new MigState.Instance(
                id,
                info.getInt(NvmlMig.GPU_INSTANCE_PROFILE),
                info.getInt(at + NvmlMig.PLACEMENT_START),
                info.getInt(at + NvmlMig.PLACEMENT_SIZE),
                profile.computeSlices(),
                sized(handle, parts.getOrDefault(id, List.of()))));
      }
    }
    return instances;
  }

  /**
   * {@return the compute instances, by the number of their GPU instance} Indices shift when
   * instances are created or destroyed: going up, none is missed if one is created meanwhile; going
   * down, none if one is destroyed.
   */
  private Map<Integer, List<MigState.Part>> parts(long device) {
    Map<Integer, List<MigState.Part>> parts = new TreeMap<>();
    if (!isThere(nvml.nvmlDeviceGetMaxMigDeviceCount(device, number))) {
      return parts;
    }
    int count = Math.max(0, Math.min(MOST_INSTANCES, number.getInt(0)));
    for (int i = 0; i < 2 * count; i++) {
      addPart(device, i < count ? i : 2 * count - 1 - i, parts);
    }
    parts.values().forEach(list -> list.sort(Comparator.comparingInt(MigState.Part::id)));
    return parts;
  }

  private void addPart(long device, int index, Map<Integer, List<MigState.Part>> parts) {
    if (!isThere(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index, number))) {
      return;
    }
    long handle = number.getLong(0);
    if (!isThere(mig.nvmlDeviceGetGpuInstanceId(handle, number))
        || !isThere(mig.nvmlDeviceGetComputeInstanceId(handle, pending))) {
      return;
    }
    List<MigState.Part> found = parts.computeIfAbsent(number.getInt(0), none -> new ArrayList<>());
    int id = pending.getInt(0);
    if (found.stream().anyMatch(part -> part.id() == id)) {
      return;
    }
    ByteBuffer text = NativeCalls.memory(Nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE);
    int code = nvml.nvmlDeviceGetUUID(handle, text, text.capacity() - 1);
    if (code != Nvml.NVML_ERROR_NOT_FOUND) { // else destroyed in between
      check(code, "nvmlDeviceGetUUID");
      found.add(new MigState.Part(id, new GpuId(NativeCalls.text(text)), 0));
    }
  }

  /** {@return the same compute instances with their slices, without those destroyed in between} */
  private List<MigState.Part> sized(long instance, List<MigState.Part> parts) {
    List<MigState.Part> sized = new ArrayList<>();
    for (MigState.Part part : parts) {
      ByteBuffer info = NativeCalls.memory(NvmlMig.PART_BYTES);
      int code = mig.nvmlGpuInstanceGetComputeInstanceById(instance, part.id(), number);
      if (code == Nvml.NVML_SUCCESS) {
        code = mig.nvmlComputeInstanceGetInfo_v2(number.getLong(0), info);
      }
      if (code != Nvml.NVML_ERROR_NOT_FOUND) {
        check(code, "nvmlComputeInstanceGetInfo_v2");
        int slices = info.getInt(NvmlMig.PART_SLICES);
        sized.add(new MigState.Part(part.id(), part.device(), slices));
      }
    }
    return sized;
  }

  // ---- changes

  /**
   * Switches MIG mode.
   *
   * @param gpu which GPU
   * @param on whether it is to be on
   * @return why the mode is still pending, and what to do; empty if it is active
   * @throws GpuDriverException if this process may not switch it, or the GPU cannot
   */
  public synchronized Optional<String> switchMode(GpuId gpu, boolean on) {
    begin();
    long device = device(gpu);
    number.putInt(0, 0);
    check(mig.nvmlDeviceSetMigMode(device, on ? 1 : 0, number), "nvmlDeviceSetMigMode");
    int activation = number.getInt(0);
    if (activation == Nvml.NVML_SUCCESS) {
      return Optional.empty();
    }
    return Optional.of(
        String.valueOf(nvml.nvmlErrorString(activation))
            + ": the mode is pending; end what uses the GPU, or destroy its instances, and do this"
            + " again, or reset the GPU");
  }

  /**
   * Creates a GPU instance at a place. The seat never touches one without a record of its own.
   *
   * @param gpu on which GPU
   * @param profileId its profile
   * @param start its first memory slice
   * @param memorySlices how many it takes
   * @return its NVML number
   * @throws GpuDriverException if it cannot be created there, or this process may not
   */
  public synchronized int create(GpuId gpu, int profileId, int start, int memorySlices) {
    begin();
    long device = device(gpu);
    ByteBuffer placement = NativeCalls.memory(NvmlMig.PLACEMENT_BYTES);
    placement.putInt(NvmlMig.PLACEMENT_START, start);
    placement.putInt(NvmlMig.PLACEMENT_SIZE, memorySlices);
    check(
        mig.nvmlDeviceCreateGpuInstanceWithPlacement(device, profileId, placement, number),
        "nvmlDeviceCreateGpuInstanceWithPlacement");
    ByteBuffer info = NativeCalls.memory(NvmlMig.GPU_INSTANCE_BYTES);
    long made = number.getLong(0);
    int code = mig.nvmlGpuInstanceGetInfo(made, info);
    if (code != Nvml.NVML_SUCCESS) {
      mig.nvmlGpuInstanceDestroy(made); // without its number, it could not be recognized as ours
      check(code, "nvmlGpuInstanceGetInfo");
    }
    return info.getInt(NvmlMig.GPU_INSTANCE_ID);
  }

  /**
   * Creates a compute instance of the smallest profile that has enough slices.
   *
   * @param gpu on which GPU
   * @param instance in which GPU instance
   * @param slices how many compute slices it takes at least
   * @return its NVML number
   * @throws GpuDriverException if it cannot be created, or this process may not
   */
  public synchronized int createPart(GpuId gpu, int instance, int slices) {
    begin();
    long handle = instance(device(gpu), instance);
    ByteBuffer info = NativeCalls.memory(NvmlMig.PART_PROFILE_BYTES);
    int least = Integer.MAX_VALUE;
    int profile = -1;
    for (int i = 0; i < NvmlMig.COMPUTE_INSTANCE_PROFILES; i++) {
      int code = mig.nvmlGpuInstanceGetComputeInstanceProfileInfo(handle, i, 0, info);
      int has = info.getInt(NvmlMig.PART_PROFILE_SLICES);
      if (code == Nvml.NVML_SUCCESS && has >= slices && has < least) {
        least = has;
        profile = info.getInt(NvmlMig.PART_PROFILE_ID);
      }
    }
    if (profile < 0) {
      throw new GpuDriverException(
          "no kind of compute instance has so many slices: gpu=" + gpu + " slices=" + slices, null);
    }
    check(
        mig.nvmlGpuInstanceCreateComputeInstance(handle, profile, number),
        "nvmlGpuInstanceCreateComputeInstance");
    ByteBuffer part = NativeCalls.memory(NvmlMig.PART_BYTES);
    check(
        mig.nvmlComputeInstanceGetInfo_v2(number.getLong(0), part),
        "nvmlComputeInstanceGetInfo_v2");
    return part.getInt(NvmlMig.PART_ID);
  }

  private long instance(long device, int id) {
    check(
        mig.nvmlDeviceGetGpuInstanceById(device, id, number), "nvmlDeviceGetGpuInstanceById " + id);
    return number.getLong(0);
  }

  /**
   * Destroys all compute instances of a GPU instance. Does nothing if the GPU instance is gone.
   *
   * @param gpu on which GPU
   * @param instance the GPU instance's NVML number
   * @throws GpuDriverException if one is in use, or this process may not
   */
  public void destroyParts(GpuId gpu, int instance) {
    destroyParts(gpu, instance, Set.of());
  }

  /** Destroys a GPU instance's compute instances except {@code but}. Does nothing if it is gone. */
  synchronized void destroyParts(GpuId gpu, int instance, Set<GpuId> but) {
    begin();
    long device = device(gpu);
    int found = mig.nvmlDeviceGetGpuInstanceById(device, instance, number);
    if (found == Nvml.NVML_ERROR_NOT_FOUND) {
      return;
    }
    check(found, "nvmlDeviceGetGpuInstanceById");
    long handle = number.getLong(0);
    unclear = Nvml.NVML_SUCCESS;
    List<MigState.Part> parts = parts(device).getOrDefault(instance, List.of());
    check(unclear, "reading the MIG instances");
    for (MigState.Part part : parts) {
      if (but.contains(part.device())) {
        continue;
      }
      int code = mig.nvmlGpuInstanceGetComputeInstanceById(handle, part.id(), number);
      if (code == Nvml.NVML_SUCCESS) {
        code = mig.nvmlComputeInstanceDestroy(number.getLong(0));
      }
      if (code != Nvml.NVML_ERROR_NOT_FOUND) {
        check(code, "nvmlComputeInstanceDestroy");
      }
    }
  }

  /**
   * Destroys a GPU instance that has no compute instances. Does nothing if it is gone.
   *
   * @param gpu on which GPU
   * @param instance the GPU instance's NVML number
   * @throws GpuDriverException if it still has compute instances, or this process may not
   */
  public synchronized void destroy(GpuId gpu, int instance) {
    begin();
    int code = mig.nvmlDeviceGetGpuInstanceById(device(gpu), instance, number);
    if (code == Nvml.NVML_SUCCESS) {
      code = mig.nvmlGpuInstanceDestroy(number.getLong(0));
    }
    if (code != Nvml.NVML_ERROR_NOT_FOUND) {
      check(code, "nvmlGpuInstanceDestroy");
    }
  }

  @Override
  public void close() {
    OpenNvml.remove(end);
    synchronized (this) {
      closed = true;
      end();
    }
  }
}
