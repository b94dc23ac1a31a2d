/*
 * ARMCI: one-sided communication between the ranks of a job.
 *
 *     cc program.c -larmci        and        armci-run -n 4 ./a.out
 *
 * This header declares what libarmci has; what is not here is not there: no non-blocking calls, no mutexes, no groups,
 * no send and receive, no ARMCI_Malloc_local, no PARMCI_ names.
 *
 * Names and signatures are ARMCI's. The values of constants and the layout of armci_giov_t are ARMCI-MPI's; those of
 * other ARMCIs differ, so use the names, and compile against the header of the library that is linked.
 *
 * Places    Memory of other ranks is named by a rank and an address: an address that ARMCI_Malloc gave for that
 *           rank, or one inside the bytes that begin there. A local buffer may be any memory of the caller, also
 *           memory that ARMCI_Malloc gave for the calling rank.
 * Codes     A function that returns a code returns 0, or after one line on standard error something else. Nothing
 *           has been transferred then. A function that can return no code ends the job where it fails.
 * Order     Transfers of one rank to the same place take effect in the order of the calls.
 * Local     A put or accumulate may be followed at once by changes of its source. What a get, a value or a
 *           read-modify-write fetched is there on return.
 * Remote    A put or accumulate is complete at its target after ARMCI_Fence, ARMCI_AllFence or ARMCI_Barrier.
 * Threads   A rank calls from the thread that called ARMCI_Init.
 *
 * "Collective" functions are called by all ranks, in the same order.
 */
#ifndef ARMCI_H
#define ARMCI_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Joining and leaving ---------------------------------------------------------------------------------- */

/* Joins the job that armci-run started this process for, or makes it a job of one rank. Collective. Further calls
   are counted. */
int ARMCI_Init(void);

/* The same. Takes nothing from the arguments, which may be NULL. */
int ARMCI_Init_args(int *argc, char ***argv);

/* Whether there were more calls of ARMCI_Init than of ARMCI_Finalize. Any thread may ask, at any time. */
int ARMCI_Initialized(void);

/* Matches one ARMCI_Init; the last one completes all transfers and leaves the job. Collective. A rank that ends
   without it ends the job as failed. */
int ARMCI_Finalize(void);

/* For a rank that is about to give up: releases what would stay behind. (Nothing would: the system takes back all
   that this library holds.) Not collective, and no replacement for ARMCI_Finalize. */
void ARMCI_Cleanup(void);

/* Writes `msg`, which may be NULL, and ends the job with this exit code, or with 1 if the code's low 8 bits are 0.
   What C streams have buffered is written first, unless that takes more than half a second (another thread may hold a
   stream while it waits for input). Any thread may call it, at any time. Does not return. */
void ARMCI_Error(const char *msg, int code);

/* ---- Memory ----------------------------------------------------------------------------------------------- */

/* A size in bytes. */
typedef long armci_size_t;

/* Allocates `size` bytes on the calling rank; sizes may differ, and may be 0. base_ptrs[r] becomes the address of
   rank r's part, NULL if that has 0 bytes. The content is arbitrary. Collective; fails on all ranks or on none. */
int ARMCI_Malloc(void **base_ptrs, armci_size_t size);

/* Frees an allocation: each rank passes its own part's address, which is NULL if it has 0 bytes. Completes all
   transfers first. Collective; fails on all ranks or on none. */
int ARMCI_Free(void *ptr);

/* ---- Contiguous transfers --------------------------------------------------------------------------------- */

/* What ARMCI_Acc, ARMCI_AccS and ARMCI_AccV add. The values are ARMCI-MPI's. */
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

/* Copies `size` bytes from `src` on `target` to `dst` here. */
int ARMCI_Get(void *src, void *dst, int size, int target);

/* dst[i] += *scale * src[i] on `proc`, for `bytes` bytes of elements of type `datatype`, which is that of *scale
   too. Each element is updated atomically with respect to other accumulates. `dst` must be aligned to its type. */
int ARMCI_Acc(int datatype, void *scale, void *src, void *dst, int bytes, int proc);

/* ---- Strided transfers ------------------------------------------------------------------------------------ */

/* count[0] bytes are contiguous; level l, of 0 to stride_levels - 1, repeats what is below it count[l + 1] times,
   src_stride_ar[l] bytes apart at the source and dst_stride_ar[l] at the destination. At most 7 levels. A count of
   0 moves nothing. For accumulates, strides must keep the elements aligned. */
int ARMCI_PutS(void *src_ptr, int src_stride_ar[],
               void *dst_ptr, int dst_stride_ar[],
               int count[], int stride_levels, int proc);
int ARMCI_GetS(void *src_ptr, int src_stride_ar[],
               void *dst_ptr, int dst_stride_ar[],
               int count[], int stride_levels, int proc);
int ARMCI_AccS(int datatype, void *scale,
               void *src_ptr, int src_stride_ar[],
               void *dst_ptr, int dst_stride_ar[],
               int count[], int stride_levels, int proc);

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

/* The segments of iov_len descriptors, in order; all are checked before any is transferred. */
int ARMCI_PutV(armci_giov_t *iov, int iov_len, int proc);
int ARMCI_GetV(armci_giov_t *iov, int iov_len, int proc);
int ARMCI_AccV(int datatype, void *scale, armci_giov_t *iov, int iov_len, int proc);

/* ---- Single values ---------------------------------------------------------------------------------------- */

/* Stores `src` at `dst` on `proc`. */
int ARMCI_PutValueInt(int src, void *dst, int proc);
int ARMCI_PutValueLong(long src, void *dst, int proc);
int ARMCI_PutValueFloat(float src, void *dst, int proc);
int ARMCI_PutValueDouble(double src, void *dst, int proc);

/* Returns what `src` on `proc` holds. */
int ARMCI_GetValueInt(void *src, int proc);
long ARMCI_GetValueLong(void *src, int proc);
float ARMCI_GetValueFloat(void *src, int proc);
double ARMCI_GetValueDouble(void *src, int proc);

/* ---- Read-modify-write ------------------------------------------------------------------------------------ */

/* What ARMCI_Rmw does. The values are ARMCI-MPI's. */
enum ARMCI_Rmw_e {
    ARMCI_FETCH_AND_ADD = 0,      /* adds `value` to an int */
    ARMCI_FETCH_AND_ADD_LONG = 1, /* adds `value` to a long */
    ARMCI_SWAP = 2,               /* puts the int at ploc there */
    ARMCI_SWAP_LONG = 3           /* puts the long at ploc there */
};

/* Changes the int or long at `prem` on `proc`, atomically with respect to other read-modify-writes, and stores at
   `ploc` what it held before. `prem` must be aligned to its type. */
int ARMCI_Rmw(int op, void *ploc, void *prem, int value, int proc);

/* ---- Completion ------------------------------------------------------------------------------------------- */

/* Completes at `proc` what the calling rank wrote there. */
void ARMCI_Fence(int proc);

/* Completes everywhere what the calling rank wrote. */
void ARMCI_AllFence(void);

/* Completes everywhere what any rank wrote; all ranks meet. Collective. */
void ARMCI_Barrier(void);

/* ---- Messages --------------------------------------------------------------------------------------------- */

/* A buffer of these functions must be the caller's alone while the call runs: no other thread touches it, and if it
   lies in memory that ARMCI_Malloc gave, no rank transfers to or from it. */

/* The calling rank, of 0 to armci_msg_nproc() - 1. */
int armci_msg_me(void);
int armci_msg_nproc(void);

/* All ranks meet. Collective. */
void armci_msg_barrier(void);

/* Ends the job as ARMCI_Error does. */
void armci_msg_abort(int code);

/* Gives every rank the `len` bytes that `root` has. Collective. Two names for one function. */
void armci_msg_brdcst(void *buffer, int len, int root);
void armci_msg_bcast(void *buffer, int len, int root);

/* Combines x[i] of all ranks, for each i below n, and gives all the same result. `op` is "+", "*", "max", "min",
   or, of magnitudes, "absmax", "absmin". Integers wrap. Collective. */
void armci_msg_igop(int *x, int n, char *op);
void armci_msg_lgop(long *x, int n, char *op);
void armci_msg_llgop(long long *x, int n, char *op);
void armci_msg_fgop(float *x, int n, char *op);
void armci_msg_dgop(double *x, int n, char *op);

#ifdef __cplusplus
}
#endif

#endif
