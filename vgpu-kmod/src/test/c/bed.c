#include "bed.h"

#include <pthread.h>

struct vgpu_rm_book book;
struct model_rm rm;
struct vgpu_rm_tenant *tenants[BED_TENANTS];
unsigned char *arena;
long allocations;
void (*bed_meanwhile)(void);
void (*bed_between)(void);
void (*bed_watch)(void);
struct bed_report bed_reported;

static pthread_mutex_t ledgers = PTHREAD_MUTEX_INITIALIZER, drivers = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_id;

/* The process that calls the core, and its file. */
struct caller {
  struct bed_process *process;
  struct bed_file *file, *held;
};

static void bed_put(struct bed_file *file);

void bed_fail(const char *what) {
  fprintf(stderr, "FAIL %s\n", what);
  fflush(stderr);
  abort();
}

uint64_t bed_at(size_t offset) { return (uint64_t)(uintptr_t)arena + offset; }

static void *bed_make(size_t size) {
  __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
  return calloc(1, size);
}

static void bed_drop(void *memory) {
  __atomic_sub_fetch(&allocations, 1, __ATOMIC_RELAXED);
  free(memory);
}

static int bed_there(uint64_t at, size_t size, size_t from) {
  uint64_t base = (uint64_t)(uintptr_t)arena;
  return at >= base + from && at <= base + BED_ARENA && size <= base + BED_ARENA - at;
}

static int bed_read(void *self, void *into, uint64_t from, size_t size) {
  (void)self;
  if (!bed_there(from, size, 0)) return -1;
  memcpy(into, (void *)(uintptr_t)from, size);
  return 0;
}

static int bed_write(void *self, uint64_t into, const void *from, size_t size) {
  (void)self;
  if (!bed_there(into, size, BED_READ_ONLY)) return -1;
  memcpy((void *)(uintptr_t)into, from, size);
  return 0;
}

static void bed_lock(struct vgpu_rm_book *of) {
  (void)of;
  pthread_mutex_lock(&ledgers);
}

static void bed_unlock(struct vgpu_rm_book *of) {
  (void)of;
  pthread_mutex_unlock(&ledgers);
}

static struct vgpu_rm_tenant *bed_tenant(void *self, struct vgpu_rm_book *of) {
  return vgpu__tenant_find(of, ((struct caller *)self)->process->key);
}

static struct bed_file *bed_file(void *self, int32_t fd) {
  return fd < 0 || fd >= BED_FILES ? NULL : ((struct caller *)self)->process->files[fd];
}

static uint64_t bed_file_of(void *self, int32_t fd) {
  struct bed_file *file = ((struct caller *)self)->held = bed_file(self, fd);
  if (file == NULL) return 0;
  file->refs++;
  return file->id;
}

static void bed_let_go(void *self, uint64_t file) {
  struct bed_file *held = ((struct caller *)self)->held;
  if (held->id != file) bed_fail("another file than the one that is held");
  bed_put(held);
}

static struct model_file *bed_model_file(void *self, int32_t fd) {
  struct bed_file *file = bed_file(self, fd);
  return file != NULL ? &file->model : NULL;
}

static int bed_has_gpu(void *self) {
  (void)self;
  return 1;
}

static long bed_forward(void *self, uint32_t word, uint64_t argument) {
  struct caller *caller = self;
  struct model_caller as = {.read = bed_read,
                            .write = bed_write,
                            .file_of = bed_model_file,
                            .has_gpu = bed_has_gpu,
                            .self = self,
                            .tag = caller->process->tag,
                            .process = caller->process->number};
  void (*between)(void) = bed_between;
  if (between != NULL) {
    bed_between = NULL;
    between();
  }
  pthread_mutex_lock(&drivers);
  struct model_file *tied = caller->file->model.tied;
  long result = model_ioctl(&rm, &caller->file->model, &as, word, argument);
  if (caller->file->model.tied != tied) ((struct bed_file *)(void *)caller->file->model.tied)->refs++;
  if (bed_watch != NULL) bed_watch();
  pthread_mutex_unlock(&drivers);
  void (*meanwhile)(void) = bed_meanwhile;
  if (meanwhile != NULL) {
    bed_meanwhile = NULL;
    meanwhile();
  }
  return result;
}

static void bed_report(const struct vgpu_rm_tenant *tenant, const struct vgpu_rm_call *call, uint32_t status,
                       uint64_t bytes) {
  bed_reported = (struct bed_report){
      .tenant = tenant, .number = call->number, .status = status, .bytes = bytes, .count = bed_reported.count + 1};
}

static const struct vgpu_rm_host host = {
    .read = bed_read,
    .write = bed_write,
    .lock = bed_lock,
    .unlock = bed_unlock,
    .tenant = bed_tenant,
    .forward = bed_forward,
    .file_of = bed_file_of,
    .let_go = bed_let_go,
    .report = bed_report,
    .further_class = 0x90ce,
};

void bed_begin(uint64_t limit) {
  static const struct vgpu_rm_heap heap = {.make = bed_make, .drop = bed_drop};
  allocations = 0;
  memset(&rm, 0, sizeof rm);
  rm.make = bed_make;
  rm.drop = bed_drop;
  rm.total = 4096 * MIB;
  rm.fb_info_size = 1028;
  if (arena == NULL) arena = malloc(BED_ARENA);
  if (arena == NULL || vgpu__book_begin(&book, &heap, 64, 12345) != 0) bed_fail("no memory");
  memset(arena, 0, BED_ARENA);
  for (int i = 1; i < BED_TENANTS; i++) {
    tenants[i] = bed_make(sizeof *tenants[i]);
    tenants[i]->key = (uint64_t)i;
    tenants[i]->limit = limit;
    tenants[i]->most_objects = 10000;
    vgpu__tenant_add(&book, tenants[i]);
  }
}

void bed_end(void) {
  if (rm.clients != NULL || rm.objects != 0 || rm.taken != 0) bed_fail("the model has something left");
  if (book.clients != NULL || book.objects != 0 || book.tied != 0) bed_fail("the ledger has something left");
  for (int i = 1; i < BED_TENANTS; i++) {
    struct vgpu_rm_tenant *tenant = vgpu__tenant_find(&book, (uint64_t)i);
    if (tenant != NULL && (tenant->used != 0 || tenant->host_used != 0 || tenant->objects != 0 || tenant->refs != 1)) {
      fprintf(stderr, "tenant %d: used %llu, host %llu, objects %llu, refs %llu\n", i, (unsigned long long)tenant->used,
              (unsigned long long)tenant->host_used, (unsigned long long)tenant->objects,
              (unsigned long long)tenant->refs);
      bed_fail("a tenant is charged for nothing");
    }
  }
  vgpu__book_end(&book);
  if (allocations != 0) bed_fail("memory has leaked");
}

int bed_open(struct bed_process *process, int control) {
  int fd = 0;
  while (fd < BED_FILES && process->files[fd] != NULL) fd++;
  if (fd == BED_FILES) return -1;
  struct bed_file *file = calloc(1, sizeof *file);
  if (file == NULL) bed_fail("no memory");
  file->model.control = control;
  file->id = __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED);
  file->refs = 1;
  process->files[fd] = file;
  return fd;
}

long bed_ioctl(struct bed_process *process, int fd, uint32_t word, uint64_t argument) {
  struct caller caller = {.process = process, .file = process->files[fd]};
  return vgpu__rm_ioctl(&book, &host, &caller, caller.file->id, word, argument);
}

static void bed_put(struct bed_file *file) {
  if (--file->refs != 0) return;
  struct bed_file *tied = (struct bed_file *)(void *)file->model.tied;
  pthread_mutex_lock(&drivers);
  model_close(&rm, &file->model);
  pthread_mutex_unlock(&drivers);
  pthread_mutex_lock(&ledgers);
  vgpu__file_closed(&book, file->id);
  pthread_mutex_unlock(&ledgers);
  free(file);
  if (tied != NULL) bed_put(tied);
}

void bed_close(struct bed_process *process, int fd) {
  struct bed_file *file = process->files[fd];
  process->files[fd] = NULL;
  if (file != NULL) bed_put(file);
}

void bed_exit(struct bed_process *process) {
  for (int fd = 0; fd < BED_FILES; fd++) bed_close(process, fd);
}
