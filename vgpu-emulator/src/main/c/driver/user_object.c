/* The program's objects that graphs refer to. When the last reference is dropped, the program's destructor runs. */
#include "driver.h"
#include "graph.h"
#include "host_calls.h"

#include <stdlib.h>

enum { NO_DESTRUCTOR_SYNC = 1, MOVE = 1 };

struct CUuserObject_st {
    emu_object object;
    void *data;
    CUhostFn destroy;
    int64_t count;
};

typedef struct {
    CUhostFn destroy;
    void *data;
} ending;

static emu_pool user_objects = EMU_POOL(struct CUuserObject_st, 1 << 18);
static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* protects counts and lists of references */

static bool is_user_object(CUuserObject object) {
    return emu_pool_has(&user_objects, object);
}

static void *end(void *argument) {
    ending what = *(ending *)argument;
    free(argument);
    emu_thread.in_host_call = 1; /* a destructor must not call the driver */
    what.destroy(what.data);
    return NULL;
}

/* Runs the destructor on a driver thread, because the caller may hold a program lock that the destructor takes. */
static void finish(CUuserObject object) {
    ending *what = malloc(sizeof *what);
    if (what != NULL) {
        *what = (ending){object->destroy, object->data};
        if (!emu_thread_start(end, what)) {
            free(what);
        }
    }
    emu_pool_give(&user_objects, object);
}

static CUresult change(CUuserObject object, int64_t by) {
    pthread_mutex_lock(&lock);
    bool is_valid = is_user_object(object) && object->count + by >= 0;
    bool is_last = false;
    if (is_valid) {
        object->count += by;
        is_last = object->count == 0;
    }
    pthread_mutex_unlock(&lock);
    if (is_last) {
        finish(object);
    }
    return is_valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool add_reference(emu_user_references **users, CUuserObject object, unsigned int count) {
    for (emu_user_references *r = *users; r != NULL; r = r->next) {
        if (r->object == object) {
            r->count += count;
            return true;
        }
    }
    emu_user_references *added = malloc(sizeof *added);
    if (added != NULL) {
        *added = (emu_user_references){*users, object, count};
        *users = added;
    }
    return added != NULL;
}

bool emu_users_copy(emu_user_references **users, const emu_user_references *from) {
    for (; from != NULL; from = from->next) {
        if (!add_reference(users, from->object, from->count)) {
            emu_users_drop(users);
            return false;
        }
        change(from->object, from->count);
    }
    return true;
}

void emu_users_drop(emu_user_references **users) {
    while (*users != NULL) {
        emu_user_references *first = *users;
        *users = first->next;
        change(first->object, -(int64_t)first->count);
        free(first);
    }
}

EMU_API CUresult cuUserObjectCreate(CUuserObject *object, void *data, CUhostFn destroy,
                                    unsigned int count, unsigned int flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(object != NULL && destroy != NULL && count > 0 && count <= INT32_MAX &&
                flags == NO_DESTRUCTOR_SYNC);
    CUuserObject made = emu_pool_take(&user_objects);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->data = data;
    made->destroy = destroy;
    made->count = count;
    *object = made;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(count > 0 && count <= INT32_MAX);
    return change(object, count);
}

EMU_API CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(count > 0 && count <= INT32_MAX);
    return change(object, -(int64_t)count);
}

EMU_API CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                         unsigned int flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_graph(graph) && is_user_object(object) && count > 0 && count <= INT32_MAX &&
                (flags & ~(unsigned int)MOVE) == 0);
    if (!add_reference(&graph->users, object, count)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return flags == MOVE ? CUDA_SUCCESS : change(object, count);
}

EMU_API CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_graph(graph) && count > 0);
    for (emu_user_references **r = &graph->users; *r != NULL; r = &(*r)->next) {
        emu_user_references *found = *r;
        if (found->object == object && found->count >= count) {
            found->count -= count;
            if (found->count == 0) {
                *r = found->next;
                free(found);
            }
            return change(object, -(int64_t)count);
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}
