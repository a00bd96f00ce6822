/* For programs that are not linked with the driver. */
#include "driver.h"
#include "program.h"

int driver_link(struct driver *driver) {
  (void)driver;
  program_error("this program is not linked with the driver");
  return -1;
}
