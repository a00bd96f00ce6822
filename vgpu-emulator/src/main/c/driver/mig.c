#include "mig.h"

#include "gpu/mig.h"
#include "gpu/suspend.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static emu_mig_name chosen;
static char shape[32];

bool emu_mig_is_on(uint32_t device) {
    emu_mig_table table;
    emu_mig_read(&emu_driver.state, device, &table);
    return table.current != 0 && emu_mig_geometry_for(&emu_driver.state.settings) != NULL;
}

static bool choose(const emu_mig_table *table, const emu_mig_name *name) {
    const emu_settings whole = emu_driver.state.settings;
    const emu_mig_geometry *geometry = emu_mig_geometry_for(&whole);
    if (geometry == NULL || emu_mig_view(&emu_driver.state, table, name, &emu_driver.state.settings,
                                         &emu_driver.mig_gpu) != 0) {
        return false;
    }
    chosen = *name;
    emu_mig_shape(geometry, &table->instances[name->instance], name->part, &whole, shape,
                  sizeof shape);
    pthread_mutex_init(&emu_driver.mig_gpu.publish_lock, NULL);
    return true;
}

bool emu_mig_choose_uuid(const char *text, size_t length) {
    for (uint32_t device = 0; device < emu_driver.state.settings.devices; device++) {
        emu_mig_table table;
        emu_mig_name name = {.device = device};
        emu_mig_read(&emu_driver.state, device, &table);
        for (; emu_mig_next(&table, &name); name.part++) {
            char uuid[48];
            emu_mig_uuid_text(&emu_driver.state, &name, uuid);
            if (strlen(uuid) == length && strncasecmp(uuid, text, length) == 0) {
                return choose(&table, &name);
            }
        }
    }
    return false;
}

bool emu_mig_choose_first(uint32_t device) {
    emu_mig_table table;
    emu_mig_name name = {.device = device};
    emu_mig_read(&emu_driver.state, device, &table);
    return emu_mig_next(&table, &name) && choose(&table, &name);
}

bool emu_mig_enter(void) {
    emu_checkpoint_hinder(&emu_driver.state, EMU_USED_MIG);
    return emu_mig_take_space(&emu_driver.mig_gpu) && emu_mig_is_there();
}

bool emu_mig_is_there(void) {
    emu_mig_table table;
    emu_mig_read(&emu_driver.state, chosen.device, &table);
    const emu_mig_part *part = &table.instances[chosen.instance].parts[chosen.part];
    return table.current != 0 && table.instances[chosen.instance].slices != 0 &&
           part->slices != 0 && part->ending == 0;
}

bool emu_mig_own_uuid(uint8_t uuid[16]) {
    if (emu_mig_chosen()) {
        emu_mig_uuid(&emu_driver.state, &chosen, uuid);
        return true;
    }
    return false;
}

void emu_mig_own_name(char *text, size_t size) {
    const char *model = emu_driver.state.settings.model;
    if (emu_mig_chosen()) {
        snprintf(text, size, "%s MIG %s", model, shape);
    } else {
        snprintf(text, size, "%s", model);
    }
}
