/* An ARMCI that does as little as can be for one element on one node: a copy, an addition. Linked before a whole ARMCI,
 * whose functions of these names it takes the place of, it leaves what Global Arrays itself takes.
 */
#include <armci.h>
#include <string.h>

long armci_nothing_calls; /* so that nobody mistakes another ARMCI for this one */

static int copy(void *from, void *to, int bytes) {
    armci_nothing_calls++;
    memcpy(to, from, bytes);
    return 0;
}

int ARMCI_Put(void *from, void *to, int bytes, int rank) { return (void)rank, copy(from, to, bytes); }
int ARMCI_Get(void *from, void *to, int bytes, int rank) { return (void)rank, copy(from, to, bytes); }

/* The first row alone. */
int ARMCI_PutS(void *from, int *apart, void *to, int *there, int *count, int levels, int rank) {
    (void)apart, (void)there, (void)levels, (void)rank;
    return copy(from, to, count[0]);
}
int ARMCI_GetS(void *from, int *apart, void *to, int *there, int *count, int levels, int rank) {
    (void)apart, (void)there, (void)levels, (void)rank;
    return copy(from, to, count[0]);
}
int ARMCI_NbPutS(void *from, int *apart, void *to, int *there, int *count, int levels, int rank, armci_hdl_t *later) {
    (void)apart, (void)there, (void)levels, (void)rank, (void)later;
    return copy(from, to, count[0]);
}
int ARMCI_NbGetS(void *from, int *apart, void *to, int *there, int *count, int levels, int rank, armci_hdl_t *later) {
    (void)apart, (void)there, (void)levels, (void)rank, (void)later;
    return copy(from, to, count[0]);
}
int ARMCI_Wait(armci_hdl_t *later) { return (void)later, 0; }

/* Adds to a `long`, as Global Arrays does for an array of them. */
int ARMCI_Rmw(int operation, void *found, void *word, int more, int rank) {
    (void)operation, (void)rank;
    *(long *)found = *(long *)word;
    *(long *)word += more;
    return 0;
}
