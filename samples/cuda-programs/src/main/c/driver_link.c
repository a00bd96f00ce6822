/* For programs that are linked with the driver: the loader has found the functions before main. */
#include "driver.h"

#define DECLARE(name, suffix, per_thread, parameters) extern CUresult name##suffix parameters __attribute__((weak));
DRIVER_FUNCTIONS(DECLARE)
#undef DECLARE

int driver_link(struct driver *driver) {
#define TAKE(name, suffix, per_thread, parameters) driver->name = name##suffix;
  DRIVER_FUNCTIONS(TAKE)
#undef TAKE
  return 0;
}
