/* Lets the n-th operation on files below a folder fail, once or from then on. Preloaded by tools/faults.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096];
static long at, seen;
static int error_number, is_lasting, takes_reads;

void faults_arm(const char *below, long number, int error, int lasting, int reads) {
    snprintf(folder, sizeof folder, "%s", below);
    at = number; error_number = error; is_lasting = lasting; takes_reads = reads; seen = 0;
}

long faults_seen(void) { return seen; }

static int fails_at(const char *path) {
    if (!folder[0] || !path || strncmp(path, folder, strlen(folder))) return 0;
    long now = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    if (at && (now == at || (is_lasting && now > at))) { errno = error_number; return 1; }
    return 0;
}

static int fails_on(int handle) {
    char name[64], path[4096];
    if (!folder[0]) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails_at(path);
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t pwrite64(int f, const void *b, size_t n, off64_t o) { REAL(pwrite64); return fails_on(f) ? -1 : real(f, b, n, o); }
ssize_t pwrite(int f, const void *b, size_t n, off_t o) { REAL(pwrite); return fails_on(f) ? -1 : real(f, b, n, o); }
ssize_t write(int f, const void *b, size_t n) { REAL(write); return fails_on(f) ? -1 : real(f, b, n); }
ssize_t pread64(int f, void *b, size_t n, off64_t o) { REAL(pread64); return takes_reads && fails_on(f) ? -1 : real(f, b, n, o); }
ssize_t pread(int f, void *b, size_t n, off_t o) { REAL(pread); return takes_reads && fails_on(f) ? -1 : real(f, b, n, o); }
int fsync(int f) { REAL(fsync); return fails_on(f) ? -1 : real(f); }
int fdatasync(int f) { REAL(fdatasync); return fails_on(f) ? -1 : real(f); }
int ftruncate(int f, off_t n) { REAL(ftruncate); return fails_on(f) ? -1 : real(f, n); }
int ftruncate64(int f, off64_t n) { REAL(ftruncate64); return fails_on(f) ? -1 : real(f, n); }
int posix_fallocate(int f, off_t o, off_t n) { REAL(posix_fallocate); return fails_on(f) ? errno : real(f, o, n); }
int unlink(const char *p) { REAL(unlink); return fails_at(p) ? -1 : real(p); }
int rename(const char *p, const char *q) { REAL(rename); return fails_at(p) ? -1 : real(p, q); }
int link(const char *p, const char *q) { REAL(link); return fails_at(p) ? -1 : real(p, q); }

int open64(const char *p, int flags, ...) {
    REAL(open64);
    va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more);
    return (flags & O_CREAT) && fails_at(p) ? -1 : real(p, flags, mode);
}
int open(const char *p, int flags, ...) {
    REAL(open);
    va_list more; va_start(more, flags); int mode = va_arg(more, int); va_end(more);
    return (flags & O_CREAT) && fails_at(p) ? -1 : real(p, flags, mode);
}
