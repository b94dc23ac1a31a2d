/* What the programs of this folder share: the clock, samples of a call, and the line that each figure is printed as,
 * {"name":"put_8","median":4.1,"p99":4.4}, in nanoseconds per call. Our own ranks print the same lines (figure.rs), and
 * take their samples in the same way (timing.rs). Samples of a name stand in `taken` until they are reported.
 */
#ifndef SAMPLING_H
#define SAMPLING_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MIB = 1 << 20, MOST_SAMPLES = 1 << 20 };

/* The sizes that every program measures which measures transfers by size. */
static const int SIZES[] = {8, 64, 512, 4096, 32768, 262144, MIB};
enum { HOW_MANY_SIZES = sizeof SIZES / sizeof *SIZES };

/* ns per call; to be allocated before the first sample (room_for_samples). */
static double *taken;

static inline int room_for_samples(void) {
    taken = (double *)malloc(MOST_SAMPLES * sizeof *taken);
    return taken != NULL;
}

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static inline int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints the figure of so many samples; without any there is none. */
static inline void report(const char *name, int count) {
    if (count == 0) return;
    qsort(taken, count, sizeof *taken, ascending);
    printf("{\"name\":\"%s\",\"median\":%.3f,\"p99\":%.3f}\n", name, taken[count / 2], taken[count * 99L / 100]);
    fflush(stdout);
}

/* A call on so many bytes. */
typedef void (*operation)(int bytes);

/* Times `count` batches, after some that do not count. */
static inline void sample(const char *name, operation call, int bytes, int count, int batch, int reports) {
    int warm = count / 10 + 2;
    for (int i = 0; i < warm + count; i++) {
        double start = now();
        for (int j = 0; j < batch; j++) call(bytes);
        if (i >= warm) taken[i - warm] = (now() - start) / batch;
    }
    if (reports) report(name, count);
}

/* The same for as long as there is time, once at least: for what may take a scheduler's slice. */
static inline void sample_within(const char *name, operation call, int bytes, int count, double ns) {
    int got = 0;
    double end = now() + ns;
    for (int i = -count / 10 - 2; got < count && (got < 1 || now() < end); i++) {
        double start = now();
        call(bytes);
        if (i >= 0 || now() >= end) taken[got++] = now() - start;
    }
    report(name, got);
}

/* Calls per sample, so that reading the clock does not show. */
static inline int batch_for(int bytes) {
    int batch = 64000 / (bytes < 64 ? 64 : bytes);
    return batch < 2 ? 2 : batch;
}

/* Samples `NAME_BYTES`. */
static inline void of_size(const char *what, operation call, int bytes, int count) {
    char name[32];
    snprintf(name, sizeof name, "%s_%d", what, bytes);
    sample(name, call, bytes, count, batch_for(bytes), 1);
}

#endif
