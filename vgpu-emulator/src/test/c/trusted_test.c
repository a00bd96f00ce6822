/* Which directories are trusted to hold the GPUs' state. */
#include "base/trusted.h"
#include "check.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANOTHER_USER = 12345 };

static char base[] = "/tmp/vgpu-trusted-XXXXXX";
static char path[PATH_MAX];
static char problem[PATH_MAX + 100];

static int trust(const char *below) {
    snprintf(path, sizeof path, "%s%s", base, below);
    problem[0] = '\0';
    return emu_trust_directory(path, sizeof path, problem, sizeof problem);
}

static void makeIn(const char *below, mode_t mode) {
    snprintf(path, sizeof path, "%s%s", base, below);
    CHECK_OK(mkdir(path, 0700));
    CHECK_OK(chmod(path, mode));
}

static void directoriesOfOnesOwnAreTrusted(void) {
    makeIn("/own", 0700);
    CHECK_EQUAL(trust("/own"), 0);
    CHECK_EQUAL(trust("/own/not/there/yet"), 0);
    CHECK(strstr(path, "/own/not/there/yet") != NULL);
}

static void whatOthersCanWriteToIsNot(void) {
    makeIn("/open", 0777);
    makeIn("/open/inner", 0700);
    CHECK_EQUAL(trust("/open"), -1);
    CHECK_EQUAL(trust("/open/inner"), -1);
    CHECK_EQUAL(trust("/open/not-there"), -1);
    CHECK(strstr(problem, "other users can write to it") != NULL);
}

static void stickyDirectoriesAreTrustedOnTheWay(void) {
    makeIn("/sticky", 01777);
    makeIn("/sticky/inner", 0700);
    CHECK_EQUAL(trust("/sticky/inner"), 0);
    CHECK_EQUAL(trust("/sticky/not-there"), 0);
    CHECK_EQUAL(trust("/sticky"), -1);
}

static void linksAreReplacedByWhereTheyLead(void) {
    char target[PATH_MAX];
    snprintf(target, sizeof target, "%s/link", base);
    CHECK_OK(symlink("own", target));
    CHECK_EQUAL(trust("/link/state"), 0);
    CHECK(strstr(path, "/own/state") != NULL && strstr(path, "/link") == NULL);
    snprintf(target, sizeof target, "%s/link-to-open", base);
    CHECK_OK(symlink("open/inner", target));
    CHECK_EQUAL(trust("/link-to-open"), -1);
}

/* Only root can give a directory to another user. */
static void anotherUsersDirectoryIsNotTrusted(void) {
    if (geteuid() == 0) {
        makeIn("/theirs", 0700);
        CHECK_OK(chown(path, ANOTHER_USER, ANOTHER_USER));
        CHECK_EQUAL(trust("/theirs/state"), -1);
        CHECK(strstr(problem, "it belongs to another user") != NULL);
        makeIn("/group", 0770);
        CHECK_OK(chown(path, 0, ANOTHER_USER));
        CHECK_EQUAL(trust("/group"), -1);
    }
}

int main(void) {
    CHECK(mkdtemp(base) != NULL);
    directoriesOfOnesOwnAreTrusted();
    whatOthersCanWriteToIsNot();
    stickyDirectoriesAreTrustedOnTheWay();
    linksAreReplacedByWhereTheyLead();
    anotherUsersDirectoryIsNotTrusted();
    snprintf(path, sizeof path, "rm -r '%s'", base);
    CHECK_OK(system(path));
    return check_failures == 0 ? 0 : 1;
}
