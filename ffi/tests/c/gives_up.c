/* Ends the job in the way that the first argument names, on the last rank, while the others wait. */
#define _POSIX_C_SOURCE 200809L /* pipe, fdopen, dup2, ftrylockfile */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static void *read_on(void *stream) {
    if (stream == stdin) getchar();
    else getc(stream);
    return NULL;
}

/* Leaves a thread waiting for input that never comes, on standard input or on a stream of its own. */
static void wait_for_input(int standard) {
    int ends[2];
    pthread_t thread;
    CHECK(pipe(ends) == 0);
    CHECK(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    FILE *stream = standard ? stdin : fdopen(ends[0], "r");
    CHECK(stream != NULL);
    CHECK(pthread_create(&thread, NULL, read_on, stream) == 0);
    while (ftrylockfile(stream) == 0) {
        funlockfile(stream);
        sched_yield();
    }
}

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
        if (!strcmp(how, "stdin") || !strcmp(how, "stream")) {
            wait_for_input(!strcmp(how, "stdin"));
            ARMCI_Error("somebody reads", number);
        }
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
