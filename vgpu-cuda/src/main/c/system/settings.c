/* The VGPU_ settings. A value given to vgpu_attach takes precedence over the environment. */
#include <stdlib.h>
#include <string.h>

#include "system.h"

/* Settings passed to vgpu_attach. */
struct setting {
  const char *name;
  char value[VGPU_PATH];
};
static struct setting given[] = {
#define ENV(name, direction, doc) {#name, ""},
#include "vgpu_env.def"
#undef ENV
};
const char *vgpu__setting(const char *name) {
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    if (given[i].value[0] != '\0' && strcmp(given[i].name, name) == 0) return given[i].value;
  }
  const char *value = getenv(name);
  return value == NULL || value[0] == '\0' ? NULL : value;
}

const char *vgpu__value_in(const char *const *env, const char *name) {
  size_t length = strlen(name);
  for (; env != NULL && *env != NULL; env++) {
    if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
      return (*env)[length + 1] == '\0' ? NULL : *env + length + 1;
  }
  return NULL;
}

void vgpu__setting_give(const char *name, const char *value) {
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    if (strcmp(given[i].name, name) == 0 && strlen(value) < VGPU_PATH) strcpy(given[i].value, value);
  }
}
