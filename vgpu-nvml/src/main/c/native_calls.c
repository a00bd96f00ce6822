/*
 * Calls of a library that is found at run time, for NativeCalls.java. It is here instead of JNA because a fresh JVM
 * takes 100 ms and more to load that, and a pool is to open within 50. Knows nothing of NVML.
 *
 * Declares the little of JNI that it needs, so that it builds without a JDK's headers: an environment is a pointer to a
 * table of functions, whose places are fixed by JNI's specification ("Interface Function Table").
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Newer C libraries have these in another place, under another version; old programs' names for them work on all. */
#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlerror,dlerror@GLIBC_2.2.5");
#elif defined(__aarch64__) && defined(__GLIBC__)
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
__asm__(".symver dlerror,dlerror@GLIBC_2.17");
#endif

typedef const void *const *const *jni_env;
typedef void *jni_object;

enum { JNI_GET_DIRECT_BUFFER_ADDRESS = 230 };

#define JNI(type, name) __attribute__((visibility("default"))) type Java_dev_vgpu_nvml_binding_NativeCalls_##name

static void *pointer(int64_t address) { return (void *)(uintptr_t)address; }

/* The memory of a direct buffer; it stays where it is while the call has the buffer as an argument. */
static void *memory(jni_env env, jni_object buffer) {
  void *(*get)(jni_env, jni_object);
  const void *entry = (*env)[JNI_GET_DIRECT_BUFFER_ADDRESS];
  memcpy(&get, &entry, sizeof get);
  return get(env, buffer);
}

static void copy(char *into, int32_t size, const char *text) {
  size_t length = text == NULL ? 0 : strlen(text);
  if (size <= 0) {
    return;
  }
  if (length >= (size_t)size) {
    length = (size_t)size - 1;
  }
  memcpy(into, text == NULL ? "" : text, length);
  into[length] = '\0';
}

JNI(int64_t, address)(jni_env env, jni_object type, jni_object buffer);
JNI(int64_t, open)(jni_env env, jni_object type, jni_object path, jni_object reason, int32_t size);
JNI(int64_t, symbol)(jni_env env, jni_object type, int64_t library, jni_object name);
JNI(int64_t, call)
(jni_env env, jni_object type, int64_t function, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f);
JNI(void, text)(jni_env env, jni_object type, int64_t from, jni_object into, int32_t size);

JNI(int64_t, address)(jni_env env, jni_object type, jni_object buffer) {
  (void)type;
  return (int64_t)(uintptr_t)memory(env, buffer);
}

/*
 * The C library's own dlopen: in a JVM that is itself under a virtual GPU the hook's comes first, and gives what
 * stands in for a driver's library, but a pool is to see the GPUs themselves. The reason is taken here: before
 * another call, Java may have looked something up and so have cleared it.
 */
JNI(int64_t, open)(jni_env env, jni_object type, jni_object path, jni_object reason, int32_t size) {
  void *(*load)(const char *, int) = NULL;
  void *found = dlsym(RTLD_NEXT, "dlopen");
  (void)type;
  memcpy(&load, &found, sizeof load);
  void *library = load == NULL ? NULL : load(memory(env, path), RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    copy(memory(env, reason), size, dlerror());
  }
  return (int64_t)(uintptr_t)library;
}

JNI(int64_t, symbol)(jni_env env, jni_object type, int64_t library, jni_object name) {
  (void)type;
  return (int64_t)(uintptr_t)dlsym(pointer(library), memory(env, name));
}

/* Whole numbers and pointers travel alike, and a function does not look at arguments that it does not have. */
JNI(int64_t, call)
(jni_env env, jni_object type, int64_t function, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f) {
  int64_t (*callee)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
  void *address = pointer(function);
  (void)env;
  (void)type;
  memcpy(&callee, &address, sizeof callee);
  return callee(a, b, c, d, e, f);
}

JNI(void, text)(jni_env env, jni_object type, int64_t from, jni_object into, int32_t size) {
  (void)type;
  copy(memory(env, into), size, pointer(from));
}
