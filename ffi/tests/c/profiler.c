/* A profiler defines a function itself, and calls the library's by its second name. */
#include "check.h"

static int puts_seen, barriers_seen;

int ARMCI_Put(void *src, void *dst, int size, int target) {
    puts_seen++;
    return PARMCI_Put(src, dst, size, target);
}

void armci_msg_barrier(void) {
    barriers_seen++;
    parmci_msg_barrier();
}

int main(void) {
    start_mpi();
    CHECK(ARMCI_Init() == 0);
    int me = armci_msg_me(), right = (me + 1) % armci_msg_nproc();
    void **base = allocate(8);
    long number = 5;
    CHECK(ARMCI_Put(&number, base[right], sizeof number, right) == 0);
    CHECK(PARMCI_Put(&number, base[right], sizeof number, right) == 0);
    ARMCI_Fence(right);
    armci_msg_barrier();
    CHECK(*(long *)base[me] == 5);
    CHECK(puts_seen == 1 && barriers_seen == 1); /* each once: the library calls neither */
    armci_msg_barrier();
    release(base);
    CHECK(ARMCI_Finalize() == 0);
    end_mpi();
    puts("done");
    return 0;
}
