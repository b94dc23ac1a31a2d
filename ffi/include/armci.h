/*
 * ARMCI: one-sided communication between the ranks of a job.
 *
 *     mpicc program.c -larmci                   and   mpirun -n 4 ./a.out        beside an MPI
 *     cc -DARMCI_NO_MPI program.c -larmci       and   armci-run -n 4 ./a.out     without one
 *
 * This header and message.h declare all that libarmci has. Names, signatures, the values of constants and the layouts
 * of types are those of ARMCI-MPI; those of other ARMCIs differ, so use the names, and compile against the header of the
 * library that is linked.
 *
 * Places    Memory of other ranks is named by a rank and an address: an address that ARMCI_Malloc, ARMCI_Malloc_group
 *           or ARMCI_Malloc_local gave on that rank, or one inside the bytes that begin there. A local buffer may be any
 *           memory of the caller, also memory that was allocated so on the calling rank.
 * Codes     A function that returns a code returns 0, or after one line on standard error something else. Nothing
 *           has been transferred then. A function that can return no code ends the job where it fails.
 * Order     Transfers of one rank to the same place take effect in the order of the calls.
 * Local     A put or accumulate may be followed at once by changes of its source, if it is blocking. What a blocking get,
 *           a value or a read-modify-write fetched is there on return.
 * Remote    A put or accumulate is complete at its target after ARMCI_Fence, ARMCI_AllFence or ARMCI_Barrier.
 * Threads   A rank calls from the thread that called ARMCI_Init; for other threads, see ARMCI_Init_thread.
 * PARMCI_   Every function with a second name that begins with P is defined under both. A profiler defines the first
 *           name itself and calls the second.
 *
 * "Collective" functions are called by all ranks (of the world or of the group that is named), in the same order.
 */
#ifndef ARMCI_H
#define ARMCI_H

/* The communicators in ARMCI_Group are those of the MPI that the program is linked with, so its header says how wide they
   are. A program without MPI defines ARMCI_NO_MPI; they are opaque pointers then, of 8 bytes. */
#ifdef ARMCI_NO_MPI
typedef struct armci_no_comm *armci_comm_t;
#else
#if defined(__has_include)
#if !__has_include(<mpi.h>)
#error "armci.h needs mpi.h: compile with mpicc, or, for a program without MPI, with -DARMCI_NO_MPI"
#endif
#endif
#include <mpi.h>
typedef MPI_Comm armci_comm_t;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Joining and leaving ---------------------------------------------------------------------------------- */

/* Joins the job that this process was started in, or makes it a job of one rank. Collective. Further calls are counted.
   MPI may be initialised before or after, or not at all; if it is, its ranks must be numbered as ours. */
int ARMCI_Init(void);
int PARMCI_Init(void);

/* The same. Takes nothing from the arguments, which may be NULL. */
int ARMCI_Init_args(int *argc, char ***argv);
int PARMCI_Init_args(int *argc, char ***argv);

/* The same. With MPI_THREAD_SERIALIZED (2) or MPI_THREAD_MULTIPLE (3) other threads may make all calls that are not
   collective, except those of mutexes, messages, groups and notices. Each communicates by itself: a fence or a wait
   completes what the calling thread began, and a thread that ends completes all it began. All have ended before
   ARMCI_Finalize. */
int ARMCI_Init_thread(int armci_requested);
int PARMCI_Init_thread(int armci_requested);

/* The same. `comm` stands for all ranks where a communicator of theirs is given out, if this is the call that joins, and
   lives as long as that may be. It must have all ranks of the job, in its order; any other is refused on all its ranks.
   MPI must be initialised. */
int ARMCI_Init_thread_comm(int armci_requested, armci_comm_t comm);
int PARMCI_Init_thread_comm(int armci_requested, armci_comm_t comm);

/* The same without threads: Global Arrays 5.9 joins with it, where a program passes a communicator. */
int ARMCI_Init_mpi_comm(armci_comm_t comm);
int PARMCI_Init_mpi_comm(armci_comm_t comm);

/* Whether there were more calls of ARMCI_Init than of ARMCI_Finalize. Any thread may ask, at any time. */
int ARMCI_Initialized(void);
int PARMCI_Initialized(void);

/* Matches one ARMCI_Init; the last one completes all transfers and leaves the job. Collective. A rank that ends
   without it ends the job as failed. */
int ARMCI_Finalize(void);
int PARMCI_Finalize(void);

/* For a rank that is about to give up: releases what would stay behind. (Nothing would: the system takes back all
   that this library holds.) Not collective, and no replacement for ARMCI_Finalize. */
void ARMCI_Cleanup(void);

/* Writes `msg`, which may be NULL, and ends the job with this exit code, or with 1 if the code's low 8 bits are 0.
   What C streams have buffered is written first, unless that takes more than half a second (another thread may hold a
   stream while it waits for input). Any thread may call it, at any time. Does not return. */
void ARMCI_Error(const char *msg, int code);

/* ---- Groups ----------------------------------------------------------------------------------------------- */

/* Some of the ranks, in an order of their own. The library fills it in; a program reads `comm`, `rank` and `size`, and
   may copy it. grp_to_abs[i] is the rank in the world of rank i of the group, abs_to_grp the reverse, -1 for others; both
   are valid until the group is freed, and are not written. The second communicator is none: it is the library's. */
typedef struct {
    armci_comm_t comm;
    armci_comm_t noncoll_pgroup_comm;
    int *grp_to_abs;
    int *abs_to_grp;
    int rank;
    int size;
} ARMCI_Group;

/* Makes a group of the ranks that pid_list names by their numbers in the default group (or in group_parent). Collective
   over those ranks; others may call it too, which meets nobody and makes a group that they are not of (rank -1, size
   0). Its communicator is made if MPI is initialised by then. */
void ARMCI_Group_create(int grp_size, int *pid_list, ARMCI_Group *group_out);
void ARMCI_Group_create_child(int grp_size, int *pid_list, ARMCI_Group *group_out, ARMCI_Group *group_parent);

/* Ends a group, frees what is still allocated over it, and its communicator. Collective over its ranks. */
void ARMCI_Group_free(ARMCI_Group *group);

/* The calling rank's number in a group; -1, and a code that is not 0, if it is not of it. */
int ARMCI_Group_rank(ARMCI_Group *group, int *rank);
void ARMCI_Group_size(ARMCI_Group *group, int *size);

/* The default group is the world until another is set. It is the parent of ARMCI_Group_create's groups, and nothing
   else: allocations, messages and barriers without a group are the world's. */
void ARMCI_Group_set_default(ARMCI_Group *group);
void ARMCI_Group_get_default(ARMCI_Group *group_out);
void ARMCI_Group_get_world(ARMCI_Group *group_out);

/* The rank in the world of a rank of a group. One-sided calls name ranks of the world, always. */
int ARMCI_Absolute_id(ARMCI_Group *group, int group_rank);

/* The MPI communicator of a group's ranks, in the group's order; MPI_COMM_NULL for a rank that is not of it. */
armci_comm_t armci_group_comm(ARMCI_Group *group);

/* ---- Memory ----------------------------------------------------------------------------------------------- */

/* A size in bytes. */
typedef long armci_size_t;

/* Allocates `size` bytes on the calling rank; sizes may differ, and may be 0. base_ptrs[r] becomes the address of
   rank r's part, NULL if that has 0 bytes. The content is arbitrary. Collective; fails on all ranks or on none. */
int ARMCI_Malloc(void **base_ptrs, armci_size_t size);
int PARMCI_Malloc(void **base_ptrs, armci_size_t size);

/* Frees an allocation: each rank passes its own part's address, which is NULL if it has 0 bytes. Completes all
   transfers first. Collective; fails on all ranks or on none. */
int ARMCI_Free(void *ptr);
int PARMCI_Free(void *ptr);

/* The same over a group. The table has as many entries as the group has ranks; all ranks of the world may reach the
   parts, if they are told the addresses. Freed over the same group. */
int ARMCI_Malloc_group(void **ptr_arr, armci_size_t bytes, ARMCI_Group *group);
int PARMCI_Malloc_group(void **ptr_arr, armci_size_t bytes, ARMCI_Group *group);
int ARMCI_Free_group(void *ptr, ARMCI_Group *group);
int PARMCI_Free_group(void *ptr, ARMCI_Group *group);

/* The same, with a wish for a kind of memory. There is one kind, so the wish, which may be NULL, changes nothing. */
int ARMCI_Malloc_memdev(void **ptr_arr, armci_size_t bytes, const char *device);
int PARMCI_Malloc_memdev(void **ptr_arr, armci_size_t bytes, const char *device);
int ARMCI_Malloc_group_memdev(void **ptr_arr, armci_size_t bytes, ARMCI_Group *group, const char *device);
int PARMCI_Malloc_group_memdev(void **ptr_arr, armci_size_t bytes, ARMCI_Group *group, const char *device);
int ARMCI_Free_memdev(void *ptr);
int PARMCI_Free_memdev(void *ptr);

/* Memory of the calling rank alone, which others may reach too. NULL for 0 bytes and, after a line that says why, if
   there is not enough. Freeing NULL does nothing. Any thread. */
void *ARMCI_Malloc_local(armci_size_t size);
void *PARMCI_Malloc_local(armci_size_t size);
int ARMCI_Free_local(void *ptr);
int PARMCI_Free_local(void *ptr);

/* Around loads and stores of a rank in its own part, which begins at or before `ptr`: what was put there and completed
   is loaded, what was stored is got. */
void ARMCI_Access_begin(void *ptr);
void PARMCI_Access_begin(void *ptr);
void ARMCI_Access_end(void *ptr);
void PARMCI_Access_end(void *ptr);

/* Copies within the calling process; the two may overlap. */
void ARMCI_Copy(void *src, void *dst, int size);

/* What other ARMCIs limit so is limited by the settings ARMCI_MEMORY and ARMCI_SLOT here. Does nothing, at any time. */
void ARMCI_Set_shm_limit(unsigned long shmemlimit);

/* ---- Handles ---------------------------------------------------------------------------------------------- */

/* The handle of non-blocking operations: all that were begun with it since the last wait. NULL in its place stands for
   the calling thread's implicit handle. A handle is initialised before its first use, and belongs to one thread. */
typedef struct armci_hdl_s {
    int target;
    int aggregate;
} armci_hdl_t;

void ARMCI_INIT_HANDLE(armci_hdl_t *hdl);

/* From here on, contiguous operations with this handle are collected and sent together, at the latest by a wait or a
   fence; those of many rows or segments go at once. Ends, after a wait, with the other. */
void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle);
void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle);

/* Waits for local completion: sources may be changed, what was got is there. */
int ARMCI_Wait(armci_hdl_t *hdl);
int PARMCI_Wait(armci_hdl_t *hdl);

/* 0 if the handle's operations are locally complete, 1 if not yet. */
int ARMCI_Test(armci_hdl_t *hdl);
int PARMCI_Test(armci_hdl_t *hdl);

/* The same for all that the calling thread began with any handle, with one rank or with all. */
int ARMCI_WaitProc(int proc);
int PARMCI_WaitProc(int proc);
int ARMCI_WaitAll(void);
int PARMCI_WaitAll(void);

/* ---- Contiguous transfers --------------------------------------------------------------------------------- */

/* What ARMCI_Acc, ARMCI_AccS and ARMCI_AccV add. */
enum ARMCI_Acc_e {
    ARMCI_ACC_INT = 0, /* int */
    ARMCI_ACC_LNG = 1, /* long */
    ARMCI_ACC_FLT = 2, /* float */
    ARMCI_ACC_DBL = 3, /* double */
    ARMCI_ACC_CPL = 4, /* complex: two floats */
    ARMCI_ACC_DCP = 5  /* double complex: two doubles */
};

/* Copies `size` bytes from `src` here to `dst` on `target`. */
int ARMCI_Put(void *src, void *dst, int size, int target);
int PARMCI_Put(void *src, void *dst, int size, int target);
int ARMCI_NbPut(void *src, void *dst, int bytes, int proc, armci_hdl_t *hdl);
int PARMCI_NbPut(void *src, void *dst, int bytes, int proc, armci_hdl_t *hdl);

/* Copies `size` bytes from `src` on `target` to `dst` here. */
int ARMCI_Get(void *src, void *dst, int size, int target);
int PARMCI_Get(void *src, void *dst, int size, int target);
int ARMCI_NbGet(void *src, void *dst, int bytes, int proc, armci_hdl_t *hdl);
int PARMCI_NbGet(void *src, void *dst, int bytes, int proc, armci_hdl_t *hdl);

/* dst[i] += *scale * src[i] on `proc`, for `bytes` bytes of elements of type `datatype`, which is that of *scale
   too. Each element is updated atomically with respect to other accumulates. `dst` must be aligned to its type. */
int ARMCI_Acc(int datatype, void *scale, void *src, void *dst, int bytes, int proc);
int PARMCI_Acc(int datatype, void *scale, void *src, void *dst, int bytes, int proc);
int ARMCI_NbAcc(int datatype, void *scale, void *src, void *dst, int bytes, int proc, armci_hdl_t *hdl);
int PARMCI_NbAcc(int datatype, void *scale, void *src, void *dst, int bytes, int proc, armci_hdl_t *hdl);

/* ARMCI_Put, and then *flag on `proc` becomes `value`: who finds the flag set finds in place this, and all that the
   calling thread put there before. */
int ARMCI_Put_flag(void *src, void *dst, int size, int *flag, int value, int proc);
int PARMCI_Put_flag(void *src, void *dst, int size, int *flag, int value, int proc);

/* ---- Strided transfers ------------------------------------------------------------------------------------ */

/* count[0] bytes are contiguous; level l, of 0 to stride_levels - 1, repeats what is below it count[l + 1] times,
   src_stride_ar[l] bytes apart at the source and dst_stride_ar[l] at the destination. At most 7 levels. A count of
   0 moves nothing. For accumulates, strides must keep the elements aligned. */
int ARMCI_PutS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
               int count[], int stride_levels, int proc);
int PARMCI_PutS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                int count[], int stride_levels, int proc);
int ARMCI_NbPutS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                 int count[], int stride_levels, int proc, armci_hdl_t *hdl);
int PARMCI_NbPutS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                  int count[], int stride_levels, int proc, armci_hdl_t *hdl);
int ARMCI_GetS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
               int count[], int stride_levels, int proc);
int PARMCI_GetS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                int count[], int stride_levels, int proc);
int ARMCI_NbGetS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                 int count[], int stride_levels, int proc, armci_hdl_t *hdl);
int PARMCI_NbGetS(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                  int count[], int stride_levels, int proc, armci_hdl_t *hdl);
int ARMCI_AccS(int datatype, void *scale, void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
               int count[], int stride_levels, int proc);
int PARMCI_AccS(int datatype, void *scale, void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                int count[], int stride_levels, int proc);
int ARMCI_NbAccS(int datatype, void *scale, void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                 int count[], int stride_levels, int proc, armci_hdl_t *hdl);
int PARMCI_NbAccS(int datatype, void *scale, void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                  int count[], int stride_levels, int proc, armci_hdl_t *hdl);

/* As ARMCI_Put_flag. */
int ARMCI_PutS_flag(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                    int count[], int stride_levels, int *flag, int value, int proc);
int PARMCI_PutS_flag(void *src_ptr, int src_stride_ar[], void *dst_ptr, int dst_stride_ar[],
                     int count[], int stride_levels, int *flag, int value, int proc);

/* Within the calling process: write gathers the patch at `ptr` into `buf`, where it lies densely; read scatters it. */
void armci_write_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf);
void armci_read_strided(void *ptr, int stride_levels, int stride_arr[], int count[], char *buf);

/* ---- Transfers of many segments --------------------------------------------------------------------------- */

/* ptr_array_len segments of `bytes` bytes each; segment i goes from src_ptr_array[i] to dst_ptr_array[i].
   WARNING: the order of the fields is ARMCI-MPI's. Another ARMCI (that of Global Arrays) has ptr_array_len before
   bytes. Both are ints, so { src, dst, 8, 4 } compiles with either and means something else; initialise by name:
   { .src_ptr_array = src, .dst_ptr_array = dst, .bytes = 8, .ptr_array_len = 4 }. */
typedef struct {
    void **src_ptr_array;
    void **dst_ptr_array;
    int bytes;
    int ptr_array_len;
} armci_giov_t;

/* The segments of iov_len descriptors, in order; all are checked before any is transferred. The descriptors are read
   before the call returns, also by those that do not block. */
int ARMCI_PutV(armci_giov_t *iov, int iov_len, int proc);
int PARMCI_PutV(armci_giov_t *iov, int iov_len, int proc);
int ARMCI_NbPutV(armci_giov_t *iov, int iov_len, int proc, armci_hdl_t *handle);
int PARMCI_NbPutV(armci_giov_t *iov, int iov_len, int proc, armci_hdl_t *handle);
int ARMCI_GetV(armci_giov_t *iov, int iov_len, int proc);
int PARMCI_GetV(armci_giov_t *iov, int iov_len, int proc);
int ARMCI_NbGetV(armci_giov_t *iov, int iov_len, int proc, armci_hdl_t *handle);
int PARMCI_NbGetV(armci_giov_t *iov, int iov_len, int proc, armci_hdl_t *handle);
int ARMCI_AccV(int datatype, void *scale, armci_giov_t *iov, int iov_len, int proc);
int PARMCI_AccV(int datatype, void *scale, armci_giov_t *iov, int iov_len, int proc);
int ARMCI_NbAccV(int datatype, void *scale, armci_giov_t *iov, int iov_len, int proc, armci_hdl_t *handle);
int PARMCI_NbAccV(int datatype, void *scale, armci_giov_t *iov, int iov_len, int proc, armci_hdl_t *handle);

/* ---- Single values ---------------------------------------------------------------------------------------- */

/* Stores `src` at `dst` on `proc`. */
int ARMCI_PutValueInt(int src, void *dst, int proc);
int PARMCI_PutValueInt(int src, void *dst, int proc);
int ARMCI_PutValueLong(long src, void *dst, int proc);
int PARMCI_PutValueLong(long src, void *dst, int proc);
int ARMCI_PutValueFloat(float src, void *dst, int proc);
int PARMCI_PutValueFloat(float src, void *dst, int proc);
int ARMCI_PutValueDouble(double src, void *dst, int proc);
int PARMCI_PutValueDouble(double src, void *dst, int proc);
int ARMCI_NbPutValueInt(int src, void *dst, int proc, armci_hdl_t *hdl);
int PARMCI_NbPutValueInt(int src, void *dst, int proc, armci_hdl_t *hdl);
int ARMCI_NbPutValueLong(long src, void *dst, int proc, armci_hdl_t *hdl);
int PARMCI_NbPutValueLong(long src, void *dst, int proc, armci_hdl_t *hdl);
int ARMCI_NbPutValueFloat(float src, void *dst, int proc, armci_hdl_t *hdl);
int PARMCI_NbPutValueFloat(float src, void *dst, int proc, armci_hdl_t *hdl);
int ARMCI_NbPutValueDouble(double src, void *dst, int proc, armci_hdl_t *hdl);
int PARMCI_NbPutValueDouble(double src, void *dst, int proc, armci_hdl_t *hdl);

/* Returns what `src` on `proc` holds. */
int ARMCI_GetValueInt(void *src, int proc);
int PARMCI_GetValueInt(void *src, int proc);
long ARMCI_GetValueLong(void *src, int proc);
long PARMCI_GetValueLong(void *src, int proc);
float ARMCI_GetValueFloat(void *src, int proc);
float PARMCI_GetValueFloat(void *src, int proc);
double ARMCI_GetValueDouble(void *src, int proc);
double PARMCI_GetValueDouble(void *src, int proc);

/* ---- Read-modify-write ------------------------------------------------------------------------------------ */

/* What ARMCI_Rmw does. */
enum ARMCI_Rmw_e {
    ARMCI_FETCH_AND_ADD = 0,      /* adds `value` to an int */
    ARMCI_FETCH_AND_ADD_LONG = 1, /* adds `value` to a long */
    ARMCI_SWAP = 2,               /* puts the int at ploc there */
    ARMCI_SWAP_LONG = 3           /* puts the long at ploc there */
};

/* Changes the int or long at `prem` on `proc`, atomically with respect to other read-modify-writes, and stores at
   `ploc` what it held before. `prem` must be aligned to its type. */
int ARMCI_Rmw(int op, void *ploc, void *prem, int value, int proc);
int PARMCI_Rmw(int op, void *ploc, void *prem, int value, int proc);

/* ---- Mutexes ---------------------------------------------------------------------------------------------- */

/* Makes `count` mutexes on the calling rank, perhaps more or fewer on others; one set exists at a time. Collective. */
int ARMCI_Create_mutexes(int count);
int PARMCI_Create_mutexes(int count);
int ARMCI_Destroy_mutexes(void);
int PARMCI_Destroy_mutexes(void);

/* Locks mutex `mutex` of rank `proc`: first come, first served. Unlocking completes all that the holder wrote. A rank
   that holds it must not lock it again. */
void ARMCI_Lock(int mutex, int proc);
void PARMCI_Lock(int mutex, int proc);
void ARMCI_Unlock(int mutex, int proc);
void PARMCI_Unlock(int mutex, int proc);

/* ---- Completion ------------------------------------------------------------------------------------------- */

/* Completes at `proc` what the calling thread wrote there. */
void ARMCI_Fence(int proc);
void PARMCI_Fence(int proc);

/* Completes everywhere what the calling thread wrote. */
void ARMCI_AllFence(void);
void PARMCI_AllFence(void);

/* Completes everywhere what any rank wrote; all ranks meet. Collective. */
void ARMCI_Barrier(void);
void PARMCI_Barrier(void);

/* ARMCI_Fence, and tells `proc` so; returns how many times it has been told. The other waits for the next time that it
   is told by `proc`, and stores its number at pval, unless that is NULL. */
int armci_notify(int proc);
int parmci_notify(int proc);
int armci_notify_wait(int proc, int *pval);
int parmci_notify_wait(int proc, int *pval);

/* ---- Who shares memory ------------------------------------------------------------------------------------ */

/* A domain is a node: its ranks share memory, and an address of one is right on all. Domains are numbered from 0, and
   ranks within each; a negative id stands for the calling rank's domain in armci_domain_nprocs. */
enum armci_domain_e { ARMCI_DOMAIN_SMP = 0 };
typedef int armci_domain_t;

int armci_domain_nprocs(armci_domain_t domain, int id);
int armci_domain_id(armci_domain_t domain, int glob_proc_id);
int armci_domain_glob_proc_id(armci_domain_t domain, int id, int loc_proc_id);
int armci_domain_my_id(armci_domain_t domain);
int armci_domain_count(armci_domain_t domain);
int armci_domain_same_id(armci_domain_t domain, int proc);

/* Whether a rank is on the calling rank's node; whether ranks of a node share memory (they do); whether all ranks of a
   group are on the calling rank's node. */
int ARMCI_Same_node(int proc);
int ARMCI_Uses_shm(void);
int ARMCI_Uses_shm_grp(ARMCI_Group *group);

#ifdef __cplusplus
}
#endif

#include <message.h>

#endif
