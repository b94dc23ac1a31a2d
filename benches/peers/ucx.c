/* The peer that many an MPI stands on: UCX's own one-sided operations, with nothing above them. Two processes on this
 * machine, one of which is read from, written to and counted at; the other measures. Prints lines such as
 * {"name":"put_8","median":45.0,"p99":60.0}, in nanoseconds per call; for streams and rates, per transfer.
 *
 * usage: ucx (near|far) SAMPLES WINDOW_MS
 *
 * "near": through memory that both have, by the processor's own atomics. A put ends when its bytes have left the caller's
 * buffer, as ours does; there, that is where they are to be. The owner of the counter computes at last and calls nobody.
 * "far": over TCP through the loopback interface, a put with its flush. The target only looks at its worker, which is what
 * moves it on: the figure of an attentive target, the best there is.
 *
 * Target and origin are bound to the first and to the last processor that this program may use.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "pair.h"
#include "sampling.h"

enum { ROOM = 4 * MIB, COUNTER = 2 * MIB, FLIGHT = 64, STREAM = 8, NAME = 2048 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static ucp_rkey_h rkey;
static char *memory; /* this process's part, that the other reaches */
static char *local;  /* a private buffer, on a page */

/* What one process tells the other. */
struct card {
    uint64_t base;
    size_t address_bytes, key_bytes;
    char address[NAME], key[NAME];
};

static struct card theirs;

static void must(const char *what, ucs_status_t status) {
    if (status == UCS_OK) return;
    fprintf(stderr, "ucx: %s: %s\n", what, ucs_status_string(status));
    exit(1);
}

/* Which ways it may take, as its settings name them; those of the environment count where a user made some. */
static void set(ucp_config_t *config, const char *name, const char *value) {
    char variable[64];
    snprintf(variable, sizeof variable, "UCX_%s", name);
    if (getenv(variable) == NULL) must(name, ucp_config_modify(config, name, value));
}

static void open_all(int far, struct card *mine) {
    ucp_config_t *config;
    must("settings", ucp_config_read(NULL, NULL, &config));
    set(config, "TLS", far ? "tcp,self" : "shm,self");
    if (far) set(config, "NET_DEVICES", "lo");
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64};
    must("a context", ucp_init(&params, config, &context));
    ucp_config_release(config);
    ucp_worker_params_t how = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
    must("a worker", ucp_worker_create(context, &how, &worker));

    ucp_mem_map_params_t wanted = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = ROOM,
        .flags = UCP_MEM_MAP_ALLOCATE,
    };
    ucp_mem_h held;
    must("memory", ucp_mem_map(context, &wanted, &held));
    ucp_mem_attr_t found = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    must("the memory's address", ucp_mem_query(held, &found));
    memory = found.address;
    memset(memory, 0, ROOM);

    void *key;
    ucp_address_t *address;
    must("the memory's key", ucp_rkey_pack(context, held, &key, &mine->key_bytes));
    must("the worker's address", ucp_worker_get_address(worker, &address, &mine->address_bytes));
    if (mine->key_bytes > NAME || mine->address_bytes > NAME) must("names", UCS_ERR_EXCEEDS_LIMIT);
    memcpy(mine->key, key, mine->key_bytes);
    memcpy(mine->address, address, mine->address_bytes);
    mine->base = (uint64_t)memory;
    ucp_rkey_buffer_release(key);
    ucp_worker_release_address(worker, address);
}

static void reach(void) {
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (ucp_address_t *)theirs.address};
    must("an endpoint", ucp_ep_create(worker, &params, &ep));
    must("the other's memory", ucp_ep_rkey_unpack(ep, theirs.key, &rkey));
}

static const ucp_request_param_t PLAIN = {0};

/* Until this is over. */
static void finish(const char *what, ucs_status_ptr_t request) {
    if (request == NULL) return;
    if (UCS_PTR_IS_ERR(request)) must(what, UCS_PTR_STATUS(request));
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) ucp_worker_progress(worker);
    ucp_request_free(request);
    must(what, status);
}

static void flush(void) { finish("to flush", ucp_ep_flush_nbx(ep, &PLAIN)); }
static void put(int bytes) { finish("to put", ucp_put_nbx(ep, local, bytes, theirs.base, rkey, &PLAIN)); }
static void get(int bytes) { finish("to get", ucp_get_nbx(ep, local, bytes, theirs.base, rkey, &PLAIN)); }
static void put_and_flush(int bytes) {
    put(bytes);
    flush();
}
static void draw(int bytes) {
    static uint64_t one = 1, found;
    (void)bytes;
    ucp_request_param_t params = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype = ucp_dt_make_contig(8),
        .reply_buffer = &found,
    };
    finish("to add", ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, &one, 1, theirs.base + COUNTER, rkey, &params));
}

/* So many under way at a time, `each` of them a sample; complete there, all of them, at its end. */
static void flow(const char *name, int writes, int bytes, int flight, int each, int samples) {
    int places = ROOM / bytes < flight ? ROOM / bytes : flight;
    ucs_status_ptr_t under_way[FLIGHT] = {0};
    for (int i = -samples / 10 - 2; i < samples; i++) {
        double start = now();
        for (int n = 0; n < each; n++) {
            int at = n % flight;
            finish(name, under_way[at]);
            uint64_t there = theirs.base + (uint64_t)(n % places) * bytes;
            char *here = local + (size_t)(n % places) * bytes;
            under_way[at] = writes ? ucp_put_nbx(ep, here, bytes, there, rkey, &PLAIN)
                                   : ucp_get_nbx(ep, here, bytes, there, rkey, &PLAIN);
        }
        for (int at = 0; at < flight; at++) {
            finish(name, under_way[at]);
            under_way[at] = NULL;
        }
        flush();
        if (i >= 0) taken[i] = (now() - start) / each;
    }
    report(name, samples);
}

static void near_by(const struct pair *pair, int samples, double window) {
    for (int i = 0; i < HOW_MANY_SIZES; i++) {
        of_size("put", put, SIZES[i], samples);
        of_size("get", get, SIZES[i], samples);
    }
    sample("add_idle", draw, 0, samples, 100, 1);
    /* The other computes from now on, for twice as long. */
    char word = 0;
    tell(pair, &word, 1);
    double begin = now();
    int count = 0;
    while (now() - begin < window && count < MOST_SAMPLES) {
        double start = now();
        for (int i = 0; i < 100; i++) draw(0);
        taken[count++] = (now() - start) / 100;
    }
    report("add_busy", count);
}

static void far_away(int samples) {
    for (int i = 0; i < HOW_MANY_SIZES; i++) {
        char name[32];
        int count = SIZES[i] == 8 ? samples : samples / 4 + 5;
        snprintf(name, sizeof name, "get_%d", SIZES[i]);
        sample(name, get, SIZES[i], count, 1, 1);
        snprintf(name, sizeof name, "put_%d", SIZES[i]);
        sample(name, put_and_flush, SIZES[i], count, 1, 1);
    }
    sample("add", draw, 0, samples, 1, 1);
    flow("put_8_flow", 1, 8, FLIGHT, 512, samples / 10 + 5);
    flow("put_1m_stream", 1, MIB, STREAM, 16, samples / 20 + 5);
    flow("get_1m_stream", 0, MIB, STREAM, 16, samples / 20 + 5);
}

/* Looks at the worker until the other is gone or says that it is done. Near, being told once begins a computation that
 * calls nobody. */
static int wait_for_the_other(const struct pair *pair, double window) {
    for (long looks = 1;; looks++) {
        ucp_worker_progress(worker);
        if (looks % 4096 != 0) continue;
        if (!has_parent(pair)) return 1;
        struct timeval none = {0, 0};
        fd_set set;
        FD_ZERO(&set);
        FD_SET(pair->from, &set);
        if (select(pair->from + 1, &set, NULL, NULL, &none) <= 0) continue;
        char word;
        if (!hear(pair, &word, 1)) return 0;
        volatile double x = 1.0;
        for (double end = now() + 2 * window; now() < end;) x = x * 0.999999 + 1e-6;
    }
}

int main(int argc, char **argv) {
    int far = argc == 4 && strcmp(argv[1], "far") == 0;
    if (argc != 4 || (!far && strcmp(argv[1], "near") != 0)) {
        fprintf(stderr, "usage: ucx (near|far) SAMPLES WINDOW_MS\n");
        return 2;
    }
    int samples = atoi(argv[2]);
    double window = atof(argv[3]) * 1e6;
    struct pair pair;
    local = aligned_alloc(4096, ROOM);
    if (samples < 10 || samples > MOST_SAMPLES || !local || !room_for_samples()) {
        fprintf(stderr, "ucx: no memory, or not from 10 to %d samples\n", MOST_SAMPLES);
        return 2;
    }
    memset(local, 0, ROOM);
    if (!become_two(&pair)) return 2;
    struct card mine = {0};
    open_all(far, &mine);
    if (!tell(&pair, &mine, sizeof mine) || !hear(&pair, &theirs, sizeof theirs)) return 1;
    reach();
    if (pair.waiter == 0) return wait_for_the_other(&pair, window);
    if (far) far_away(samples);
    else near_by(&pair, samples, window);
    end_waiter(&pair);
    return 0;
}
