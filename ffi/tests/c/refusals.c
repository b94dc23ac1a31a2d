/* Wrong calls return something else than 0, change nothing, and write one line each: the test counts them. */
#include "check.h"

#include <pthread.h>

enum { MOST = 16 }; /* ranks */
static int refusals;
static void **base;
static int me, nproc, right;

#define REFUSED(call)           \
    do {                        \
        CHECK((call) != 0);     \
        refusals++;             \
    } while (0)

static void *from_another_thread(void *unused) {
    double x = 1;
    CHECK(ARMCI_Initialized()); /* anybody may ask */
    REFUSED(ARMCI_Put(&x, base[right], 8, right));
    REFUSED(ARMCI_Init());
    REFUSED(ARMCI_Finalize());
    REFUSED(ARMCI_Create_mutexes(1));
    return unused;
}

static void places_and_lengths(void) {
    double x = 1, scale = 1;
    char *there = (char *)base[right];
    REFUSED(ARMCI_Put(&x, there, 8, nproc));
    REFUSED(ARMCI_Put(&x, there, 8, -1));
    REFUSED(ARMCI_Put(&x, NULL, 0, nproc)); /* even for nothing */
    REFUSED(ARMCI_Put(&x, there, -8, right));
    REFUSED(ARMCI_Put(NULL, there, 8, right));
    REFUSED(ARMCI_Put(&x, NULL, 8, right));
    REFUSED(ARMCI_Put(&x, &x, 8, right)); /* not there */
    REFUSED(ARMCI_Put(&x, there + 64, 8, right));
    REFUSED(ARMCI_Put(&x, there + 57, 8, right));
    REFUSED(ARMCI_Get(there + 57, &x, 8, right));
    REFUSED(ARMCI_Get(there, &x, 8, 1000000));
    if (nproc > 1) REFUSED(ARMCI_Get(there, &x, 8, me)); /* another rank's */
    REFUSED(ARMCI_Acc(ARMCI_ACC_DBL, &scale, &x, there, 7, right));
    REFUSED(ARMCI_Acc(ARMCI_ACC_DBL, &scale, &x, there + 4, 8, right));
    REFUSED(ARMCI_Acc(ARMCI_ACC_DBL, NULL, &x, there, 8, right));
    REFUSED(ARMCI_Acc(6, &scale, &x, there, 8, right));
    REFUSED(ARMCI_PutValueInt(1, there + 61, right));
    REFUSED(ARMCI_PutValueDouble(1, there, -2));
}

static void shapes(void) {
    double x[8] = {1}, scale[2] = {1, 1};
    int one[9] = {8, 1, 1, 1, 1, 1, 1, 1, 1}, strides[8] = {8, 8, 8, 8, 8, 8, 8, 8};
    int two[] = {8, 2}, minus[] = {8, -1}, back[] = {-8}, far[] = {64}, odd[] = {12}, sixteen[] = {16, 4}, by24[] = {24};
    char *there = (char *)base[right];
    REFUSED(ARMCI_PutS(x, strides, there, strides, one, 8, right));
    REFUSED(ARMCI_PutS(x, strides, there, strides, one, -1, right));
    REFUSED(ARMCI_PutS(x, strides, there, strides, NULL, 0, right));
    REFUSED(ARMCI_PutS(x, NULL, there, strides, two, 1, right));
    REFUSED(ARMCI_PutS(x, strides, there, strides, minus, 1, right));
    REFUSED(ARMCI_PutS(x, strides, there, back, two, 1, right));
    REFUSED(ARMCI_PutS(x, strides, there, far, two, 1, right)); /* the second row lies behind the end */
    REFUSED(ARMCI_GetS(there, far, x, strides, two, 1, right));
    REFUSED(ARMCI_AccS(ARMCI_ACC_DBL, scale, x, strides, there, far, two, 1, right));
    REFUSED(ARMCI_AccS(ARMCI_ACC_DBL, scale, x, strides, there, odd, two, 1, right));
    REFUSED(ARMCI_AccS(ARMCI_ACC_DCP, scale, x, by24, there, by24, sixteen, 1, right)); /* so does the fourth */
}

static void vectors_and_words(void) {
    double x = 1, scale = 1;
    void *from[] = {&x, &x}, *to[] = {base[right], (char *)base[right] + 60}, *bad[] = {(char *)base[right] + 60};
    armci_giov_t late = {from, to, 8, 2}, wrong = {from, bad, 8, 1}, minus = {from, to, 8, -1}, none = {NULL, to, 8, 1};
    int held;
    long long_held;
    REFUSED(ARMCI_PutV(&late, 1, right));
    REFUSED(ARMCI_PutV(&wrong, 1, right));
    armci_giov_t second[] = {{from, to, 8, 1}, {from, to, 0, 2}, late}, odd[] = {{from, to, 8, 1}, {from, to, 4, 1}};
    REFUSED(ARMCI_PutV(second, 3, right)); /* none of it */
    REFUSED(ARMCI_AccV(ARMCI_ACC_DBL, &scale, second, 3, right));
    REFUSED(ARMCI_AccV(ARMCI_ACC_DBL, &scale, odd, 2, right));
    REFUSED(ARMCI_AccV(6, &scale, second, 1, right));
    REFUSED(ARMCI_GetV(&minus, 1, 0));
    REFUSED(ARMCI_PutV(&none, 1, right));
    REFUSED(ARMCI_PutV(NULL, 1, right));
    REFUSED(ARMCI_PutV(&late, -1, right));
    REFUSED(ARMCI_PutV(NULL, 0, nproc));
    REFUSED(ARMCI_Rmw(4, &held, base[right], 1, right));
    REFUSED(ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &held, (char *)base[right] + 2, 1, right));
    REFUSED(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &long_held, (char *)base[right] + 4, 1, right));
    REFUSED(ARMCI_Rmw(ARMCI_SWAP, NULL, base[right], 1, right));
    REFUSED(ARMCI_Rmw(ARMCI_SWAP, &held, &held, 1, right));
}

/* Refused on all ranks, also where only one rank is wrong. */
static void memory(void) {
    void *table[MOST];
    REFUSED(ARMCI_Malloc(table, me == 0 ? -1 : 8));
    REFUSED(ARMCI_Malloc(me == nproc - 1 ? NULL : table, 8));
    REFUSED(ARMCI_Malloc(table, 1L << 62));
    REFUSED(ARMCI_Free(me == 0 ? table : base[me]));
    REFUSED(ARMCI_Free((char *)base[me] + 8));
    CHECK(ARMCI_Malloc(table, 8) == 0);
    if (nproc > 1) REFUSED(ARMCI_Free(me == 0 ? base[me] : table[me]));
    CHECK(ARMCI_Free(table[me]) == 0);
    REFUSED(ARMCI_Free(table[me]));
    REFUSED(ARMCI_Put(table, table[right], 8, right));
}

/* Handles, mutexes, groups, flags, local memory. */
static void the_rest(void) {
    double x = 1;
    int two[] = {8, 2}, far[] = {64};
    armci_hdl_t handle;
    ARMCI_INIT_HANDLE(&handle);
    REFUSED(ARMCI_Wait(NULL));
    REFUSED(ARMCI_WaitProc(nproc));
    REFUSED(ARMCI_NbPut(&x, &x, 8, right, &handle));
    REFUSED(ARMCI_NbGet(base[right], NULL, 8, right, NULL));
    REFUSED(ARMCI_NbPutS(&x, far, base[right], far, two, 1, right, &handle));
    REFUSED(ARMCI_NbPutValueInt(1, &x, right, &handle));
    CHECK(ARMCI_Wait(&handle) == 0);
    int *flag = (int *)base[right];
    REFUSED(ARMCI_Put_flag(&x, base[right], 8, (int *)((char *)flag + 1), 1, right));
    REFUSED(ARMCI_Put_flag(&x, base[right], 8, (int *)&x, 1, right));
    REFUSED(ARMCI_Put_flag(&x, base[right], 80, flag, 1, right));
    REFUSED(ARMCI_PutS_flag(&x, far, base[right], far, two, 1, flag, 1, right));
    REFUSED(ARMCI_Destroy_mutexes());
    REFUSED(ARMCI_Create_mutexes(-1)); /* on all */
    CHECK(ARMCI_Create_mutexes(1) == 0);
    REFUSED(ARMCI_Create_mutexes(1));
    CHECK(ARMCI_Destroy_mutexes() == 0);
    REFUSED(ARMCI_Free_local(&x));
    REFUSED(ARMCI_Malloc_local(-1) == NULL);
    REFUSED(ARMCI_Init_thread(7));
    ARMCI_Group group;
    void *table[MOST];
    memset(&group, 0x5a, sizeof group);
    REFUSED(ARMCI_Malloc_group(table, 8, &group));
    REFUSED(ARMCI_Malloc_group(table, 8, NULL));
    ARMCI_Group_create(1, &me, &group);
    REFUSED(ARMCI_Malloc_group(table, -8, &group));
    CHECK(ARMCI_Malloc_group(table, 8, &group) == 0);
    REFUSED(ARMCI_Free(table[0])); /* of a group */
    REFUSED(ARMCI_Free_group(base[me], &group));
    CHECK(ARMCI_Free_group(table[0], &group) == 0);
    REFUSED(ARMCI_Free_group(table[0], &group));
    ARMCI_Group_free(&group);
    REFUSED(ARMCI_Malloc_group(table, 8, &group));
}

int main(void) {
    int x = 0;
    REFUSED(ARMCI_Put(&x, &x, sizeof x, 0)); /* before ARMCI_Init */
    REFUSED(ARMCI_Init_thread_comm(0, (armci_comm_t)0)); /* no MPI, or not yet */
    start_mpi();
    CHECK(ARMCI_Init() == 0);
    me = armci_msg_me();
    nproc = armci_msg_nproc();
    CHECK(nproc <= MOST);
    right = (me + 1) % nproc;
    base = allocate(64);
    memset(base[me], 0, 64);
    ARMCI_Barrier();

    places_and_lengths();
    shapes();
    vectors_and_words();
    memory();
    the_rest();
    REFUSED(ARMCI_Init_mpi_comm((armci_comm_t)0)); /* no MPI, or no communicator */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, from_another_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);

    ARMCI_Barrier();
    for (int i = 0; i < 64; i++) CHECK(((char *)base[me])[i] == 0);
    ARMCI_Barrier();
    void *mine = base[right];
    release(base);
    CHECK(ARMCI_Finalize() == 0);
    REFUSED(ARMCI_Put(&x, mine, sizeof x, right)); /* after ARMCI_Finalize */
    end_mpi();
    printf("%d refusals\n", refusals);
    return 0;
}
