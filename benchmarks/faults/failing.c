/* Calls that fail on files below a folder: preloaded, and steered through these numbers. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NONE, FULL, BROKEN, SHORT, SYNC };

char fail_below[512] = "";
int fail_kind = NONE;
int fail_at = 0;      /* calls that succeed before */
int fail_lasting = 0; /* all that come behind fail too */
int fail_met = 0;     /* calls that failed so far */

static int due(int fd) {
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (strncmp(path, fail_below, strlen(fail_below))) return 0;
    if (fail_at-- > 0) return 0;
    if (fail_at < -1 && !fail_lasting) return 0;
    fail_met++;
    return 1;
}

static int failing(int fd, size_t *size) {
    if (fail_kind == NONE || fail_kind == SYNC || !due(fd)) return 0;
    if (fail_kind == SHORT) {
        if (*size > 1) *size /= 2;
        return 0;
    }
    errno = fail_kind == FULL ? ENOSPC : EIO;
    return 1;
}

ssize_t write(int fd, const void *from, size_t size) {
    return failing(fd, &size) ? -1 : syscall(SYS_write, fd, from, size);
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
    return failing(fd, &size) ? -1 : syscall(SYS_pwrite64, fd, from, size, at);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off_t at) {
    return failing(fd, &size) ? -1 : syscall(SYS_pwrite64, fd, from, size, at);
}

static int unsynced(int fd) {
    if (fail_kind != SYNC || !due(fd)) return 0;
    errno = EIO;
    return 1;
}

int fsync(int fd) { return unsynced(fd) ? -1 : syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return unsynced(fd) ? -1 : syscall(SYS_fdatasync, fd); }
