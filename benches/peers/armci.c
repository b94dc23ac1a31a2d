/* The measurements of contiguous.rs, accumulate.rs, strided.rs, counter.rs and barrier.rs through ARMCI's C interface:
 * linked with ARMCI-MPI, the peer's side of the table; linked with our own library, how fast that is for C. Prints the
 * lines that our ranks print: {"name":"put_8","median":4.1,"p99":4.4}, in nanoseconds per call. Rank 1 works on rank
 * 0's memory, which is touched and begins on a page, on both sides.
 *
 * usage: armci (pair|interface|sweep|barrier) SAMPLES WINDOW_MS
 *
 * With ARMCI_NO_MPI defined it is a program without MPI.
 */
#include <armci.h>
#include <message.h>
#ifndef ARMCI_NO_MPI
#include <mpi.h>
#endif
#include <stdint.h>
#include <string.h>

#include "sampling.h"

enum { PAGE = 4096 };

static int rank, ranks, samples;
static double window; /* of a measurement with a computing owner, in ns */
static void **parts;  /* ARMCI_Malloc's addresses, by rank */
static char *theirs;  /* the first page of rank 0's part */
static char *mine;    /* a private buffer, on a page */

static void put(int bytes) { ARMCI_Put(mine, theirs, bytes, 0); }
static void get(int bytes) { ARMCI_Get(theirs, mine, bytes, 0); }
static void barrier(int bytes) { (void)bytes; ARMCI_Barrier(); }
static void accumulate(int bytes) {
    double scale = 1.5;
    ARMCI_Acc(ARMCI_ACC_DBL, &scale, mine, theirs, bytes, 0);
}
/* A mebibyte in rows of so many bytes: dense here, two lengths apart there. */
static void put_rows(int bytes) {
    int count[2] = {bytes, MIB / bytes}, dense[1] = {bytes}, apart[1] = {2 * bytes};
    ARMCI_PutS(mine, dense, theirs, apart, count, 1, 0);
}
static void get_rows(int bytes) {
    int count[2] = {bytes, MIB / bytes}, dense[1] = {bytes}, apart[1] = {2 * bytes};
    ARMCI_GetS(theirs, apart, mine, dense, count, 1, 0);
}
static void draw(int bytes) {
    long found;
    (void)bytes;
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &found, theirs, 1, 0);
}

static void put_and_get(int bytes) {
    of_size("put", put, bytes, samples);
    of_size("get", get, bytes, samples);
}

/* The owner computes, some 10 us a unit, and calls nobody; returns units per second. */
static double compute(void) {
    volatile double x = 1.0;
    double start = now(), elapsed;
    long units = 0;
    do {
        for (int i = 0; i < 5000; i++) x = x * 0.999999 + 1e-6;
        units++;
        elapsed = now() - start;
    } while (elapsed < window);
    return units / elapsed * 1e9;
}

static void owner_computing(void) {
    double rate[2];
    for (int draws = 0; draws < 2; draws++) {
        ARMCI_Barrier();
        double begin = now();
        if (rank == 0) {
            rate[draws] = compute();
            continue;
        }
        while (now() - begin < window / 20) { }
        int count = 0;
        while (now() - begin < window * 0.9) {
            if (!draws) continue;
            double start = now();
            for (int i = 0; i < 100; i++) draw(0);
            if (count < MOST_SAMPLES) taken[count++] = (now() - start) / 100;
        }
        report("add_busy", count);
    }
    if (rank == 0) {
        taken[0] = rate[1] / rate[0];
        report("kept_busy", 1);
    }
    ARMCI_Barrier();
}

/* 1 MiB that the owner has just written. */
static void owner_wrote(void) {
    for (int sample = 0; sample < samples; sample++) {
        if (rank == 0) {
            volatile double *numbers = (double *)theirs;
            for (int i = 0; i < MIB / 8; i++) numbers[i] += 1.0;
        }
        ARMCI_Barrier();
        if (rank == 1) {
            double start = now();
            put(MIB);
            taken[sample] = now() - start;
        }
        ARMCI_Barrier();
    }
    if (rank == 1) report("put_dirty", samples);
}

static char *page_of(void *address) {
    return (char *)(((uintptr_t)address + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
}

static void counter(void) {
    if (rank == 0) memset(theirs, 0, 8);
    ARMCI_Barrier();
    if (rank == 1) sample("add_idle", draw, 0, 10 * samples, 100, 1);
    owner_computing();
}

static void pair(void) {
    if (rank == 1) {
        put_and_get(8);
        put_and_get(MIB);
        sample("acc_1m", accumulate, MIB, samples, 2, 1);
    }
    ARMCI_Barrier();
    owner_wrote();
    counter();
}

static void interface(void) {
    for (int i = 0; rank == 1 && i < HOW_MANY_SIZES; i++) {
        put_and_get(SIZES[i]);
        of_size("acc", accumulate, SIZES[i], samples);
    }
    if (rank == 1) {
        sample("put_rows", put_rows, 16, samples / 4 + 5, 1, 1);
        sample("get_rows", get_rows, 16, samples / 4 + 5, 1, 1);
    }
    ARMCI_Barrier();
    counter();
}

static void sweep(void) {
    static const int sizes[] = {8,       64,      512,     4096,    16384,  65536,
                                262144,  MIB,     2 * MIB, 3 * MIB, 4 * MIB};
    int count = sizeof sizes / sizeof *sizes;
    for (int i = 0; rank == 1 && i < count; i++) put_and_get(sizes[i]);
    ARMCI_Barrier();
}

static void meet(void) {
    char name[32];
    snprintf(name, sizeof name, "barrier_%d", ranks);
    sample(name, barrier, 0, samples, ranks == 2 ? 100 : 10, rank == 0);
}

static int is(const char *what, const char *name) { return strcmp(what, name) == 0; }

/* Before and after everything else. */
static void begin(int *argc, char ***argv) {
#ifdef ARMCI_NO_MPI
    (void)argc, (void)argv;
#else
    MPI_Init(argc, argv);
#endif
    ARMCI_Init();
}
static void end(void) {
    ARMCI_Finalize();
#ifndef ARMCI_NO_MPI
    MPI_Finalize();
#endif
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    if (argc != 4) ARMCI_Error("usage: armci (pair|interface|sweep|barrier) SAMPLES WINDOW_MS", 2);
    rank = armci_msg_me();
    ranks = armci_msg_nproc();
    samples = atoi(argv[2]);
    window = atof(argv[3]) * 1e6;

    size_t bytes = 4 * MIB + PAGE;
    parts = malloc(ranks * sizeof *parts);
    char *buffer = malloc(bytes);
    if (!parts || !room_for_samples() || !buffer || ARMCI_Malloc(parts, bytes)) ARMCI_Error("no memory", 1);
    memset(parts[rank], 0, bytes);
    memset(buffer, 0, bytes);
    theirs = page_of(parts[0]);
    mine = page_of(buffer);
    ARMCI_Barrier();

    if (is(argv[1], "pair")) pair();
    else if (is(argv[1], "interface")) interface();
    else if (is(argv[1], "sweep")) sweep();
    else if (is(argv[1], "barrier")) meet();
    else ARMCI_Error("no such measurement", 2);

    ARMCI_Barrier();
    ARMCI_Free(parts[rank]);
    end();
    return 0;
}
