/* A check that fails ends the job and says where. A program that is linked with MPI is in MPI, too, from start_mpi to
   end_mpi; in one without it they do nothing. */
#ifndef CHECK_H
#define CHECK_H

#include <armci.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_MPI
#include <mpi.h>
#endif

#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            fprintf(stderr, "rank %d: %s:%d: not so: %s\n", armci_msg_me(), __FILE__, __LINE__, #condition); \
            ARMCI_Error("a check failed", 99);                                                             \
        }                                                                                                  \
    } while (0)

static inline void start_mpi(void) {
#ifdef WITH_MPI
    CHECK(MPI_Init(NULL, NULL) == MPI_SUCCESS);
#endif
}

static inline void end_mpi(void) {
#ifdef WITH_MPI
    CHECK(MPI_Finalize() == MPI_SUCCESS);
#endif
}

/* Memory of `bytes` bytes on every rank. */
static inline void **allocate(long bytes) {
    void **base = (void **)malloc((size_t)armci_msg_nproc() * sizeof *base);
    CHECK(base != NULL);
    CHECK(ARMCI_Malloc(base, bytes) == 0);
    return base;
}

static inline double *doubles(int count) {
    double *numbers = (double *)malloc((size_t)count * sizeof *numbers);
    CHECK(numbers != NULL);
    return numbers;
}

static inline void release(void **base) {
    CHECK(ARMCI_Free(base[armci_msg_me()]) == 0);
    free(base);
}

#endif
