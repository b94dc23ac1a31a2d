/* Lets 8 bytes behind an array be put, and loses memory: for a checker of memory to find both. */
#include "check.h"

int main(void) {
    CHECK(ARMCI_Init() == 0);
    int me = armci_msg_me();
    void **base = allocate(24);
    double *two = doubles(2);
    two[0] = two[1] = me;
    CHECK(ARMCI_Put(two, base[me], 24, me) == 0);
    free(two);
    two = doubles(2);
    two[0] = 1;
    CHECK(two[0] == 1);
    two = NULL;
    ARMCI_Barrier();
    release(base);
    CHECK(ARMCI_Finalize() == 0);
    puts("done");
    return 0;
}
