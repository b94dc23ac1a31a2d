/* Ends the job in the way that the first argument names, on the last rank, while the others wait. */
#define _POSIX_C_SOURCE 200809L /* pipe, fdopen, dup2, ftrylockfile */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static void *read_on(void *stream) {
    if (stream == stdin) getchar();
    else getc((FILE *)stream);
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
    start_mpi();
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
        if (!strcmp(how, "operation")) armci_msg_dgop(&x, number, (char *)"or");
        if (!strcmp(how, "group")) {
            ARMCI_Group group;
            memset(&group, 0, sizeof group);
            ARMCI_Group_free(&group);
        }
        if (!strcmp(how, "world")) {
            ARMCI_Group group;
            ARMCI_Group_get_world(&group);
            ARMCI_Group_free(&group);
        }
        if (!strcmp(how, "communicator")) {
            ARMCI_Group group;
            ARMCI_Group_get_world(&group);
            armci_comm_t comm = armci_group_comm(&group);
            printf("%d\n", ((char *)&comm)[0]);
        }
        if (!strcmp(how, "member")) {
            ARMCI_Group group;
            ARMCI_Group_create(1, &number, &group);
        }
        if (!strcmp(how, "handle")) ARMCI_INIT_HANDLE(NULL);
        if (!strcmp(how, "mutex")) ARMCI_Lock(number, 0);
        if (!strcmp(how, "scope")) armci_msg_bcast_scope(number, &x, 8, 0);
        if (!strcmp(how, "type")) armci_msg_gop_scope(SCOPE_ALL, &x, 1, (char *)"+", number);
        if (!strcmp(how, "select")) armci_msg_sel(&x, number, (char *)"max", ARMCI_DOUBLE, 1);
        if (!strcmp(how, "domain")) printf("%d\n", armci_domain_count(number));
        if (!strcmp(how, "node")) printf("%d\n", armci_domain_nprocs(ARMCI_DOMAIN_SMP, number));
        if (!strcmp(how, "tag")) armci_msg_snd(number, &x, 8, 0);
        if (!strcmp(how, "access")) ARMCI_Access_begin(&x);
        if (!strcmp(how, "short")) {
            armci_msg_snd(1, &x, 8, armci_msg_me());
            armci_msg_rcv(1, &x, number, NULL, armci_msg_me());
        }
        if (!strcmp(how, "early")) return number;
    }
    ARMCI_Barrier();
    CHECK(ARMCI_Finalize() == 0);
    end_mpi();
    return 0;
}
