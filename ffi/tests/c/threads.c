/* Threads of a rank communicate, if that was asked for. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 300 };
static int me, nproc, right;
static void **base;

static void *work(void *argument) {
    long number = (long)argument, drawn, one = 1;
    char *there = (char *)base[right];
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &drawn, base[0], 1, 0) == 0);
        CHECK(ARMCI_Acc(ARMCI_ACC_LNG, &one, &one, there + 8 + 8 * number, 8, right) == 0);
    }
    void *mine = ARMCI_Malloc_local(100);
    CHECK(mine != NULL && ARMCI_PutValueInt(5, mine, me) == 0 && ARMCI_Free_local(mine) == 0);
    ARMCI_AllFence();
    return NULL;
}

int main(void) {
    start_mpi();
    CHECK(ARMCI_Init_thread(3) == 0);
    me = armci_msg_me();
    nproc = armci_msg_nproc();
    right = (me + 1) % nproc;
    base = allocate(64);
    memset(base[me], 0, 64);
    ARMCI_Barrier();
    for (int round = 1; round <= 2; round++) {
        pthread_t threads[THREADS];
        for (long i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
        for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        ARMCI_Barrier();
        CHECK(ARMCI_GetValueLong(base[0], 0) == (long)round * ROUNDS * THREADS * nproc);
        for (int i = 0; i < THREADS; i++) CHECK(((long *)base[me])[1 + i] == (long)round * ROUNDS);
        ARMCI_Barrier();
    }
    release(base);
    CHECK(ARMCI_Finalize() == 0);
    end_mpi();
    puts("done");
    return 0;
}
