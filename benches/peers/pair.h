/* Two processes of a program that no launcher starts: the first waits on the first processor that this program may use,
 * the second measures on the last. What each must know of the other travels through pipes. Neither outlives the other
 * for long.
 */
#ifndef PAIR_H
#define PAIR_H

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair {
    int from, to;  /* pipes from the other and to it */
    pid_t waiter;  /* 0 in the one that waits */
    pid_t parent;  /* of the one that waits */
};

/* Binds this process to the first or to the last processor that it may use. One that cannot be bound measures all the
 * same, less steadily. */
static inline void bind_to(int last) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all)) return;
    int chosen = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && (chosen < 0 || last)) chosen = cpu;
    CPU_ZERO(&one);
    CPU_SET(chosen, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Makes two of one; 0 if that could not be. To be called before any library is initialised: few survive a fork. */
static inline int become_two(struct pair *pair) {
    int there[2], back[2];
    pid_t me = getpid();
    if (pipe(there) || pipe(back)) return 0;
    pair->waiter = fork();
    if (pair->waiter < 0) return 0;
    pair->parent = me;
    int measures = pair->waiter != 0;
    bind_to(measures);
    pair->from = measures ? back[0] : there[0];
    pair->to = measures ? there[1] : back[1];
    close(measures ? back[1] : there[1]);
    close(measures ? there[0] : back[0]);
    return 1;
}

/* Tells the other, or is told by it; 0 if it is gone. */
static inline int tell(const struct pair *pair, const void *what, size_t bytes) {
    return write(pair->to, what, bytes) == (ssize_t)bytes;
}
static inline int hear(const struct pair *pair, void *what, size_t bytes) {
    for (char *at = (char *)what; bytes > 0;) {
        ssize_t got = read(pair->from, at, bytes);
        if (got <= 0) return 0;
        at += got;
        bytes -= (size_t)got;
    }
    return 1;
}

/* Whether the one that measures is still there. */
static inline int has_parent(const struct pair *pair) { return getppid() == pair->parent; }

/* Ends the one that waits, by a signal upon which libraries tidy up. */
static inline void end_waiter(const struct pair *pair) {
    kill(pair->waiter, SIGTERM);
    waitpid(pair->waiter, NULL, 0);
}

#endif
