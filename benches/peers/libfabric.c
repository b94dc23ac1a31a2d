/* The peer between nodes: what libfabric itself does, with nothing above it. Two processes on this machine, one of
 * which is read from and written to; the other measures. Prints lines such as {"name":"read_8","median":15000.0,
 * "p99":21000.0}, in nanoseconds per call; for streams and rates, per transfer.
 *
 * usage: libfabric [+]PROVIDER:DOMAIN SAMPLES [ANYTHING]; with +, one could sleep over the queues, as a program must be
 * able to that does not burn its cores, and with some providers each look at them takes longer for it
 *
 * The target only looks at its queue, which is what moves a provider of manual progress on. So this is the figure of an
 * attentive target, the best there is. Writes ask for delivery: they are complete when they are there.
 *
 * Target and origin are bound to the first and to the last processor that this program may use.
 */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdint.h>
#include <string.h>

#include "pair.h"
#include "sampling.h"

enum { ROOM = 4 * MIB, FLIGHT = 64, STREAM = 8, NAME = 256 };

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct fid_mr *mr;
static char *memory;

/* What one process tells the other. */
struct card {
    uint64_t key, base;
    size_t len;
    char name[NAME];
};

static struct card theirs;
static fi_addr_t peer;

static void must(const char *what, long code) {
    if (code == 0) return;
    fprintf(stderr, "libfabric: %s: %s\n", what, fi_strerror((int)-code));
    exit(1);
}

static void open_all(const char *provider, const char *interface, int sleeps, struct card *mine) {
    struct fi_info *hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup(provider);
    if (*interface) hints->domain_attr->name = strdup(interface);
    must("no such provider", fi_getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, &info));
    must("fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    must("domain", fi_domain(fabric, info, &domain, NULL));
    struct fi_av_attr av_attr = {.count = 2};
    must("addresses", fi_av_open(domain, &av_attr, &av, NULL));
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = sleeps ? FI_WAIT_FD : FI_WAIT_NONE};
    must("queue", fi_cq_open(domain, &cq_attr, &cq, NULL));
    must("endpoint", fi_endpoint(domain, info, &ep, NULL));
    must("addresses of the endpoint", fi_ep_bind(ep, &av->fid, 0));
    must("queue of the endpoint", fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
    must("to enable the endpoint", fi_enable(ep));
    must("memory", fi_mr_reg(domain, memory, ROOM, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 77, 0, &mr, NULL));
    mine->key = fi_mr_key(mr);
    mine->base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)memory : 0;
    mine->len = sizeof mine->name;
    must("the address", fi_getname(&ep->fid, mine->name, &mine->len));
    fi_freeinfo(hints);
}

/* Takes completions out; how many. */
static int look(void) {
    struct fi_cq_msg_entry entries[16];
    ssize_t taken = fi_cq_read(cq, entries, 16);
    if (taken == -FI_EAGAIN) return 0;
    if (taken < 0) {
        struct fi_cq_err_entry error = {0};
        fi_cq_readerr(cq, &error, 0);
        fprintf(stderr, "libfabric: an operation failed: %s\n", fi_strerror(error.err));
        exit(1);
    }
    return (int)taken;
}

/* Begins a write (or a read) of so many bytes, once there is room for it. */
static int begin(int writes, size_t bytes, size_t at, void *context) {
    struct iovec iov = {memory + at, bytes};
    struct fi_rma_iov remote = {theirs.base + at, bytes, theirs.key};
    void *desc = fi_mr_desc(mr);
    struct fi_msg_rma message = {&iov, &desc, 1, peer, &remote, 1, context, 0};
    int done = 0;
    for (;;) {
        ssize_t code = writes ? fi_writemsg(ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE)
                              : fi_readmsg(ep, &message, FI_COMPLETION);
        if (code == 0) return done;
        if (code != -FI_EAGAIN) must("to begin", code);
        done += look();
    }
}

/* One at a time. */
static void latency(const char *name, int writes, size_t bytes, int samples) {
    static struct fi_context2 context;
    for (int i = -samples / 10 - 2; i < samples; i++) {
        double start = now();
        int done = begin(writes, bytes, 0, &context);
        while (done == 0) done += look();
        if (i >= 0) taken[i] = now() - start;
    }
    report(name, samples);
}

/* So many under way at a time, `each` of them a sample. */
static void flow(const char *name, int writes, size_t bytes, int flight, int each, int samples) {
    static struct fi_context2 contexts[FLIGHT];
    size_t places = ROOM / bytes < (size_t)flight ? ROOM / bytes : (size_t)flight;
    for (int i = -samples / 10 - 2; i < samples; i++) {
        double start = now();
        int under_way = 0;
        for (int n = 0; n < each; n++) {
            while (under_way >= flight) under_way -= look();
            under_way += 1 - begin(writes, bytes, (size_t)(n % (int)places) * bytes, &contexts[n % flight]);
        }
        while (under_way > 0) under_way -= look();
        if (i >= 0) taken[i] = (now() - start) / each;
    }
    report(name, samples);
}

int main(int argc, char **argv) {
    int sleeps = argc > 1 && *argv[1] == '+';
    char *interface = argc < 3 ? NULL : strrchr(argv[1], ':');
    if (interface == NULL) {
        fprintf(stderr, "usage: libfabric [+]PROVIDER:DOMAIN SAMPLES [ANYTHING]\n");
        return 2;
    }
    *interface++ = 0;
    int samples = atoi(argv[2]);
    struct pair pair;
    memory = aligned_alloc(4096, ROOM);
    if (samples < 10 || samples > MOST_SAMPLES || !memory || !room_for_samples()) {
        fprintf(stderr, "libfabric: no memory, or not from 10 to %d samples\n", MOST_SAMPLES);
        return 2;
    }
    memset(memory, 1, ROOM);
    if (!become_two(&pair)) return 2;
    struct card mine = {0};
    open_all(argv[1] + sleeps, interface, sleeps, &mine);
    if (!tell(&pair, &mine, sizeof mine) || !hear(&pair, &theirs, sizeof theirs)) return 1;
    if (fi_av_insert(av, theirs.name, 1, &peer, 0, NULL) != 1) must("the peer's address", -FI_EINVAL);
    if (pair.waiter == 0) {
        /* Until the other is done; now and then, whether it is still there. */
        for (long looks = 1;; looks++) {
            look();
            if (looks % (1 << 20) == 0 && !has_parent(&pair)) return 1;
        }
    }
    latency("read_8", 0, 8, samples);
    latency("write_8", 1, 8, samples);
    for (int i = 1; i < HOW_MANY_SIZES - 1; i++) {
        char name[32];
        snprintf(name, sizeof name, "read_%d", SIZES[i]);
        latency(name, 0, SIZES[i], samples / 4 + 5);
        snprintf(name, sizeof name, "write_%d", SIZES[i]);
        latency(name, 1, SIZES[i], samples / 4 + 5);
    }
    flow("write_8_flow", 1, 8, FLIGHT, 512, samples / 10 + 5);
    flow("read_8_flow", 0, 8, FLIGHT, 512, samples / 10 + 5);
    flow("write_1m_stream", 1, MIB, STREAM, 16, samples / 20 + 5);
    flow("read_1m_stream", 0, MIB, STREAM, 16, samples / 20 + 5);
    flow("write_1m", 1, MIB, 1, 1, samples / 10 + 5);
    flow("read_1m", 0, MIB, 1, 1, samples / 10 + 5);
    end_waiter(&pair);
    return 0;
}
