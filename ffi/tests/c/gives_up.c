/* Ends the job in the way that the first argument names, on the last rank, while the others wait. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 3);
    const char *how = argv[1];
    int number = atoi(argv[2]);
    double x = 1;
    CHECK(ARMCI_Init() == 0);
    printf("before\n"); /* in a buffer of C's */
    if (armci_msg_me() == armci_msg_nproc() - 1) {
        if (!strcmp(how, "error")) ARMCI_Error("I give up", number);
        if (!strcmp(how, "silent")) ARMCI_Error(NULL, number);
        if (!strcmp(how, "abort")) armci_msg_abort(number);
        if (!strcmp(how, "fence")) ARMCI_Fence(number);
        if (!strcmp(how, "value")) printf("%g\n", ARMCI_GetValueDouble(&x, number));
        if (!strcmp(how, "root")) armci_msg_brdcst(&x, 8, number);
        if (!strcmp(how, "operation")) armci_msg_dgop(&x, number, "or");
        if (!strcmp(how, "early")) return number;
    }
    ARMCI_Barrier();
    return ARMCI_Finalize();
}
