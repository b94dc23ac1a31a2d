/*
 * ARMCI's message layer: collective operations, and messages between two ranks. See armci.h, which includes this.
 *
 * A buffer of these functions must be the caller's alone while the call runs: no other thread touches it, and if it
 * lies in memory that ARMCI allocated, no rank transfers to or from it.
 */
#ifndef ARMCI_MESSAGE_H
#define ARMCI_MESSAGE_H

#include <armci.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who takes part: all ranks (of the world, or of a group that is named), those of them on the calling rank's node, or
   the first of each node. A rank that does not take part returns at once. */
enum armci_scope_e { SCOPE_ALL = 0, SCOPE_NODE = 1, SCOPE_MASTERS = 2 };

/* The elements of a buffer. */
enum armci_type_e { ARMCI_INT = 0, ARMCI_LONG = 1, ARMCI_LONG_LONG = 2, ARMCI_FLOAT = 3, ARMCI_DOUBLE = 4 };

/* The calling rank, of 0 to armci_msg_nproc() - 1. */
int armci_msg_me(void);
int armci_msg_nproc(void);

/* Seconds since some time in the past. */
double armci_timer(void);

/* Ends the job as ARMCI_Error does. */
void armci_msg_abort(int code);

/* ---- Two ranks -------------------------------------------------------------------------------------------- */

/* Sends `len` bytes to rank `to`. May return before they are received; up to 16 KiB it does. Tags are not negative.
   Messages of one rank to another are received in the order sent. */
void armci_msg_snd(int tag, void *buffer, int len, int to);

/* Receives the first message with this tag from rank `from`, or from any, whose number is returned. Its length is stored
   at msglen, unless that is NULL; a message longer than buflen ends the job. */
void armci_msg_rcv(int tag, void *buffer, int buflen, int *msglen, int from);
int armci_msg_rcvany(int tag, void *buffer, int buflen, int *msglen);

/* ---- Meeting, broadcast, exchange; all collective --------------------------------------------------------- */

/* All ranks meet, or those of a group; completes their transfers, too. */
void armci_msg_barrier(void);
void parmci_msg_barrier(void);
void armci_msg_group_barrier(ARMCI_Group *group);
void parmci_msg_group_barrier(ARMCI_Group *group);

/* Gives every rank the `len` bytes that `root`, a rank of the world, has. The first two are one function. The last takes
   them from the first rank of each node to its others. */
void armci_msg_brdcst(void *buffer, int len, int root);
void armci_msg_bcast(void *buffer, int len, int root);
void armci_msg_bcast_scope(int scope, void *buffer, int len, int root);
void armci_msg_group_bcast_scope(int scope, void *buf, int len, int root, ARMCI_Group *group);
void armci_msg_clus_brdcst(void *buf, int len);

/* The root of a binary tree over a scope, and whom the calling rank has above, to the left and to the right below it; -1
   for nobody. Not collective. */
void armci_msg_bintree(int scope, int *Root, int *Up, int *Left, int *Right);

/* Table entry i becomes, everywhere, what rank i (of the group) had there. `n` is how many ranks there are. */
void armci_exchange_address(void *ptr_ar[], int n);
void armci_exchange_address_grp(void *ptr_arr[], int n, ARMCI_Group *group);

/* ---- Combining; all collective ---------------------------------------------------------------------------- */

/* Combines x[i] of all ranks, for each i below n, and gives all the same result. `op` is "+", "*", "max", "min", of
   magnitudes "absmax" or "absmin"; of integers also, bit by bit, "&" ("band") or "|" ("bor", "or"), and as 1 or 0, whether
   all or any are not 0: "&&" ("land"), "||" ("lor"). What follows in the string does not matter. Integers wrap. */
void armci_msg_igop(int *x, int n, char *op);
void armci_msg_lgop(long *x, int n, char *op);
void armci_msg_llgop(long long *x, int n, char *op);
void armci_msg_fgop(float *x, int n, char *op);
void armci_msg_dgop(double *x, int n, char *op);
void armci_msg_gop_scope(int scope, void *x, int n, char *op, int type);

/* The same among the ranks of a group. */
void armci_msg_group_igop(int *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_lgop(long *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_llgop(long long *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_fgop(float *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_dgop(double *x, int n, char *op, ARMCI_Group *group);
void armci_msg_group_gop_scope(int scope, void *x, int n, char *op, int type, ARMCI_Group *group);

/* The same among the ranks of the calling rank's node. */
void armci_msg_clus_igop(int *x, int n, char *op);
void armci_msg_clus_lgop(long *x, int n, char *op);
void armci_msg_clus_llgop(long long *x, int n, char *op);
void armci_msg_clus_fgop(float *x, int n, char *op);
void armci_msg_clus_dgop(double *x, int n, char *op);

/* The same, promising the result to the first rank only. */
void armci_msg_reduce(void *x, int n, char *op, int type);
void armci_msg_reduce_scope(int scope, void *x, int n, char *op, int type);

/* Of the records of `n` bytes that ranks contribute (those with `contribute` not 0), all get the one whose first element,
   of this type, is largest ("max") or smallest ("min"); of the lowest rank, if several are. If nobody contributes,
   nothing changes. */
void armci_msg_sel(void *x, int n, char *op, int type, int contribute);
void armci_msg_sel_scope(int scope, void *x, int n, char *op, int type, int contribute);

#ifdef __cplusplus
}
#endif

#endif
