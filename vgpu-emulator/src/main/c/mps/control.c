/*
 * A stand-in for nvidia-cuda-mps-control: the daemon (-d), and a client that passes commands from standard input. It
 * knows the commands that vgpu uses. Its servers are processes that do nothing. Its clients are the processes whose
 * environment names its pipe directory. It does not emulate how MPS shares the GPU.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_TEXT 8192
#define MOST_CLIENTS 256
#define REAP_MS 100

static const char *pipe_directory;
static pid_t server;
static double default_percent = 100.0;
static double server_percent = 100.0;
static char default_limit[64] = "0";
static char server_limit[64] = "0";

/* The answer to the current command. */
static char answer[MOST_TEXT];
static size_t answer_length;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length =
        vsnprintf(answer + answer_length, sizeof answer - answer_length, format, arguments);
    va_end(arguments);
    if (length > 0 && (size_t)length < sizeof answer - answer_length) {
        answer_length += (size_t)length;
    }
}

static bool address_of(struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int length =
        snprintf(address->sun_path, sizeof address->sun_path, "%s/control", pipe_directory);
    return length > 0 && (size_t)length < sizeof address->sun_path;
}

static int dial(void) {
    struct sockaddr_un address;
    int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (to < 0 || !address_of(&address) ||
        connect(to, (struct sockaddr *)&address, sizeof address) != 0) {
        if (to >= 0) {
            close(to);
        }
        return -1;
    }
    return to;
}

/* ---- clients */

static bool is_client(const char *pid) {
    char path[64];
    static char text[65536];
    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    static const char name[] = "CUDA_MPS_PIPE_DIRECTORY=";
    for (char *at = text; length > 0 && at < text + length; at += strlen(at) + 1) {
        text[length] = 0;
        if (strncmp(at, name, sizeof name - 1) == 0) {
            return strcmp(at + sizeof name - 1, pipe_directory) == 0;
        }
    }
    return false;
}

/* Whether a process is the daemon, a server, or a command client. */
static bool is_tool(const char *pid) {
    char path[64];
    char name[32] = "";
    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return true;
    }
    ssize_t length = read(file, name, sizeof name - 1);
    close(file);
    return length <= 0 || strncmp(name, "nvidia-cuda-mps", 15) == 0;
}

static size_t clients(long *pids) {
    size_t count = 0;
    DIR *all = opendir("/proc");
    struct dirent *entry;
    while (all != NULL && (entry = readdir(all)) != NULL && count < MOST_CLIENTS) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && is_client(entry->d_name) &&
            !is_tool(entry->d_name)) {
            pids[count++] = strtol(entry->d_name, NULL, 10);
        }
    }
    if (all != NULL) {
        closedir(all);
    }
    return count;
}

/* ---- servers */

static void reap(void) {
    for (pid_t ended = waitpid(-1, NULL, WNOHANG); ended > 0; ended = waitpid(-1, NULL, WNOHANG)) {
        if (ended == server) {
            server = 0;
        }
    }
}

static void start_server(void) {
    if (server > 0) {
        return;
    }
    server_percent = default_percent;
    memcpy(server_limit, default_limit, sizeof server_limit);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
        for (int file = 3; file < 64; file++) {
            close(file);
        }
        while (getppid() == parent) {
            pause();
        }
        _exit(0);
    }
    server = child > 0 ? child : 0;
}

static void stop_server(void) {
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
        server = 0;
    }
}

/* ---- commands */

static bool is_server(const char *text) {
    if (text == NULL || server <= 0 || strtol(text, NULL, 10) != (long)server) {
        say("Server %s not found\n", text == NULL ? "" : text);
        return false;
    }
    return true;
}

static bool percent(const char *text, double *value) {
    char *end = NULL;
    double read = text == NULL ? 0 : strtod(text, &end);
    if (text == NULL || *end != 0 || read <= 0 || read > 100) {
        say("Invalid active thread percentage\n");
        return false;
    }
    *value = read;
    say("%.1f\n", read);
    return true;
}

static void limit(char *into, size_t size, const char *device, const char *text) {
    if (device == NULL || text == NULL || strlen(text) >= size) {
        say("Invalid pinned memory limit\n");
        return;
    }
    snprintf(into, size, "%s", text);
}

static void list_clients(void) {
    long pids[MOST_CLIENTS];
    size_t count = clients(pids);
    for (size_t i = 0; i < count; i++) {
        say("%ld\n", pids[i]);
    }
}

static void processes(void) {
    long pids[MOST_CLIENTS];
    size_t count = server > 0 ? clients(pids) : 0;
    say("PID       ID    SERVER    DEVICE             NAMESPACE COMMAND\n");
    for (size_t i = 0; i < count; i++) {
        const char *device = getenv("CUDA_VISIBLE_DEVICES");
        say("%-9ld %-5zu %-9ld %-18.13s 4026531836 client\n", pids[i], i + 1, (long)server,
            device == NULL ? "" : device);
    }
}

/* Executes a command. False: the daemon quits. */
static bool command(char *line) {
    char *rest = NULL;
    char *word = strtok_r(line, " \t\r\n", &rest);
    char *first = word == NULL ? NULL : strtok_r(NULL, " \t\r\n", &rest);
    char *second = first == NULL ? NULL : strtok_r(NULL, " \t\r\n", &rest);
    char *third = second == NULL ? NULL : strtok_r(NULL, " \t\r\n", &rest);
    if (word == NULL) {
        return true;
    }
    if (strcmp(word, "get_server_list") == 0) {
        if (server > 0) {
            say("%ld\n", (long)server);
        }
    } else if (strcmp(word, "start_server") == 0) {
        start_server();
    } else if (strcmp(word, "get_client_list") == 0) {
        if (is_server(first)) {
            list_clients();
        }
    } else if (strcmp(word, "ps") == 0) {
        processes();
    } else if (strcmp(word, "set_default_active_thread_percentage") == 0) {
        percent(first, &default_percent);
    } else if (strcmp(word, "get_default_active_thread_percentage") == 0) {
        say("%.1f\n", default_percent);
    } else if (strcmp(word, "set_active_thread_percentage") == 0) {
        if (is_server(first)) {
            percent(second, &server_percent);
        }
    } else if (strcmp(word, "get_active_thread_percentage") == 0) {
        if (is_server(first)) {
            say("%.1f\n", server_percent);
        }
    } else if (strcmp(word, "set_default_device_pinned_mem_limit") == 0) {
        limit(default_limit, sizeof default_limit, first, second);
    } else if (strcmp(word, "set_device_pinned_mem_limit") == 0) {
        if (is_server(first)) {
            limit(server_limit, sizeof server_limit, second, third);
        }
    } else if (strcmp(word, "get_device_pinned_mem_limit") == 0) {
        if (is_server(first)) {
            say("%s\n", server_limit);
        }
    } else if (strcmp(word, "quit") == 0) {
        return false;
    } else {
        say("Unknown command: %s\n", word);
    }
    return true;
}

/* Serves one connection. False: the daemon quits. */
static bool serve(int with) {
    char text[MOST_TEXT];
    size_t length = 0;
    struct timeval patience = {.tv_sec = 2};
    setsockopt(with, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (ssize_t read_now = 1; read_now > 0 && length < sizeof text - 1;) {
        read_now = read(with, text + length, sizeof text - 1 - length);
        length += read_now > 0 ? (size_t)read_now : 0;
    }
    text[length] = 0;
    answer_length = 0;
    answer[0] = 0;
    reap();
    bool goes_on = true;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL && goes_on;
         line = strtok_r(NULL, "\n", &rest)) {
        goes_on = command(line);
    }
    (void)!send(with, answer, answer_length, MSG_NOSIGNAL);
    return goes_on;
}

static void daemon_loop(int listener, const char *pid_file, const char *socket_file) {
    for (bool goes_on = true; goes_on;) {
        struct pollfd waits = {.fd = listener, .events = POLLIN};
        int ready = poll(&waits, 1, REAP_MS);
        reap();
        int with = ready > 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (with >= 0) {
            goes_on = serve(with);
            if (!goes_on) {
                stop_server();
                unlink(pid_file);
                unlink(socket_file);
            }
            close(with);
        }
    }
}

static int run_daemon(void) {
    int other = dial();
    if (other >= 0) {
        close(other);
        fprintf(stderr, "An instance of this daemon is already running\n");
        return 1;
    }
    struct sockaddr_un address;
    if (!address_of(&address)) {
        fprintf(stderr, "The pipe directory's path is too long\n");
        return 1;
    }
    mkdir(pipe_directory, 0700);
    unlink(address.sun_path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 16) != 0) {
        fprintf(stderr, "Cannot create the control pipe: %s\n", strerror(errno));
        return 1;
    }
    pid_t child = fork();
    if (child != 0) {
        return child > 0 ? 0 : 1;
    }
    setsid();
    prctl(PR_SET_NAME, "nvidia-cuda-mps-control");
    int nothing = open("/dev/null", O_RDWR);
    for (int file = 0; file < 3 && nothing >= 0; file++) {
        dup2(nothing, file);
    }
    char pid_file[256];
    snprintf(pid_file, sizeof pid_file, "%s/nvidia-cuda-mps-control.pid", pipe_directory);
    FILE *file = fopen(pid_file, "we");
    if (file != NULL) {
        fprintf(file, "%ld\n", (long)getpid());
        fclose(file);
    }
    daemon_loop(listener, pid_file, address.sun_path);
    return 0;
}

static int give_commands(void) {
    char text[MOST_TEXT];
    int to = dial();
    if (to < 0) {
        fprintf(stderr, "Cannot find MPS control daemon process\n");
        return 1;
    }
    size_t length = fread(text, 1, sizeof text, stdin);
    if (send(to, text, length, MSG_NOSIGNAL) != (ssize_t)length) {
        return 1;
    }
    shutdown(to, SHUT_WR);
    ssize_t read_now = read(to, text, sizeof text);
    for (; read_now > 0; read_now = read(to, text, sizeof text)) {
        fwrite(text, 1, (size_t)read_now, stdout);
    }
    return 0;
}

int main(int count, char **arguments) {
    const char *named = getenv("CUDA_MPS_PIPE_DIRECTORY");
    pipe_directory = named == NULL || *named == 0 ? "/tmp/nvidia-mps" : named;
    if (count == 2 && strcmp(arguments[1], "-d") == 0) {
        return run_daemon();
    }
    if (count > 1) {
        fprintf(stderr, "usage: nvidia-cuda-mps-control [-d]\n");
        return 1;
    }
    return give_commands();
}
