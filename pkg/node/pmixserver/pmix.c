//go:build cgo

#define _GNU_SOURCE

#include "pmix.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "_cgo_export.h"

static int (*server_init)(struct server *, struct info *, size_t);
static int (*server_finalize)(void);
static int (*register_namespace)(const char *, int, struct info *, size_t, op_done, void *);
static int (*register_client)(const struct process *, uid_t, gid_t, void *, op_done, void *);
static int (*setup_fork)(const struct process *, char ***);
static int (*generate_regex)(const char *, char **);
static int (*generate_ppn)(const char *, char **);
static const char *(*error_string)(int);

static char *say(const char *what, const char *why) {
	char *out = NULL;
	return asprintf(&out, "%s: %s", what, why) < 0 ? strdup(what) : out;
}

static char *failed(const char *what, int status) { return say(what, error_string(status)); }

char *pmix_open(const char *library) {
	void *lib = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
	if (!lib)
		return strdup(dlerror());
	const struct { const char *name; void *at; } all[] = {
		{"PMIx_server_init", &server_init},
		{"PMIx_server_finalize", &server_finalize},
		{"PMIx_server_register_nspace", &register_namespace},
		{"PMIx_server_register_client", &register_client},
		{"PMIx_server_setup_fork", &setup_fork},
		{"PMIx_generate_regex", &generate_regex},
		{"PMIx_generate_ppn", &generate_ppn},
		{"PMIx_Error_string", &error_string},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		void *f = dlsym(lib, all[i].name);
		if (!f)
			return strdup(dlerror());
		memcpy(all[i].at, &f, sizeof f);
	}
	return NULL;
}

// What libpmix does on its own thread is waited for.
struct wait {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool over;
	int status;
};

static void wake(int status, void *data) {
	struct wait *w = data;
	pthread_mutex_lock(&w->mutex);
	w->over = true;
	w->status = status;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->mutex);
}

static int wait_for(struct wait *w, int status) {
	if (status == done_at_once)
		return done;
	if (status != done)
		return status;
	pthread_mutex_lock(&w->mutex);
	while (!w->over)
		pthread_cond_wait(&w->cond, &w->mutex);
	pthread_mutex_unlock(&w->mutex);
	return w->status;
}

static struct wait new_wait(void) {
	struct wait w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
	return w;
}

// Infos.
static struct info *key(struct info *i, const char *name, uint16_t type) {
	memset(i, 0, sizeof *i);
	strncpy(i->key, name, key_size - 1);
	i->value.type = type;
	return i;
}
static void text(struct info *i, const char *name, char *v) { key(i, name, type_string)->value.is.text = v; }
static void u32(struct info *i, const char *name, uint32_t v) { key(i, name, type_uint32)->value.is.u32 = v; }
static void u16(struct info *i, const char *name, uint16_t v) { key(i, name, type_uint16)->value.is.u16 = v; }
static void rank(struct info *i, const char *name, uint32_t v) { key(i, name, type_rank)->value.is.u32 = v; }

static int connected(const struct process *p, void *o, op_done f, void *d) { return done_at_once; }

static int aborted(const struct process *p, void *o, int status, const char *text, struct process *ps, size_t n, op_done f, void *d) {
	pmixAborted(p->rank, status, (char *)(text ? text : ""));
	return done_at_once;
}

static uint32_t tasks; // of the whole job

static int fence(const struct process *ps, size_t n, const struct info *i, size_t ni, char *data, size_t size, modex_done f, void *d) {
	if (n != tasks && !(n == 1 && ps[0].rank == all_ranks))
		return not_supported; // of some of them: see the doc of the package
	pmixFence(data, size, (void *)f, d);
	free(data);
	return done;
}

// All that tasks publish is everywhere after their fence: what is not there is nowhere.
static int get(const struct process *p, const struct info *i, size_t n, modex_done f, void *d) { return not_found; }

void pmix_pass(void *call, void *data, const char *blob, size_t size) {
	((modex_done)call)(done, blob, size, data, free, (void *)blob);
}

enum { job_infos = 17, task_infos = 8 };

// job_level fills what all tasks are told; the arrays that it makes live as long as the server.
static char *job_level(const struct job *j, struct info *all) {
	char *names = NULL, *map = NULL;
	int status = generate_regex(j->node_names, &names);
	if (status == done)
		status = generate_ppn(j->node_tasks, &map);
	if (status != done)
		return failed("PMIx_generate_regex", status);
	struct info *i = all;
	text(i++, "pmix.jobid", j->id);
	u32(i++, "pmix.univ.size", j->size);
	u32(i++, "pmix.job.size", j->size);
	u32(i++, "pmix.max.size", j->size);
	u32(i++, "pmix.app.size", j->size);
	u32(i++, "pmix.job.napps", 1);
	u32(i++, "pmix.num.nodes", j->nodes);
	u32(i++, "pmix.local.size", j->here);
	u32(i++, "pmix.node.size", j->here);
	u32(i++, "pmix.nodeid", j->node);
	u32(i++, "pmix.appnum", 0);
	rank(i++, "pmix.aldr", 0);
	rank(i++, "pmix.lldr", j->tasks[0]);
	text(i++, "pmix.lpeers", j->peers);
	text(i++, "pmix.nmap", names);
	text(i++, "pmix.pmap", map);
	text(i++, "pmix.nsdir", j->dir);
	return NULL;
}

static void task_level(const struct job *j, uint32_t task, struct info *out) {
	struct array *a = calloc(1, sizeof *a);
	struct info *i = calloc(task_infos, sizeof *i);
	a->type = type_info, a->size = task_infos, a->items = i;
	key(out, "pmix.pdata", type_array)->value.is.array = a;
	rank(i++, "pmix.rank", task);
	rank(i++, "pmix.grank", task);
	rank(i++, "pmix.apprank", task);
	u32(i++, "pmix.appnum", 0);
	u32(i++, "pmix.nodeid", j->node_of[task]);
	u16(i++, "pmix.lrank", j->local_of[task]);
	u16(i++, "pmix.nrank", j->local_of[task]);
	text(i++, "pmix.pdir", j->dir);
}

static struct server functions = {.connected = connected, .finalized = connected, .abort = aborted, .fence = fence, .get = get};

char *pmix_serve(const struct job *j) {
	tasks = j->size;
	struct info own[3];
	text(&own[0], "pmix.srvr.tmpdir", j->dir);
	text(&own[1], "pmix.sys.tmpdir", j->dir);
	text(&own[2], "pmix.hname", j->host);
	int status = server_init(&functions, own, sizeof own / sizeof *own);
	if (status != done)
		return failed("PMIx_server_init", status);
	struct info *infos = calloc(job_infos + j->size, sizeof *infos);
	char *bad = job_level(j, infos);
	if (bad)
		return bad;
	for (uint32_t t = 0; t < j->size; t++)
		task_level(j, t, &infos[job_infos + t]);
	struct wait w = new_wait();
	status = wait_for(&w, register_namespace(j->namespace, j->here, infos, job_infos + j->size, wake, &w));
	if (status != done)
		return failed("PMIx_server_register_nspace", status);
	for (uint32_t n = 0; n < j->here; n++) {
		struct process p = {.rank = j->tasks[n]};
		strncpy(p.namespace, j->namespace, namespace_size - 1);
		struct wait w = new_wait();
		status = wait_for(&w, register_client(&p, getuid(), getgid(), NULL, wake, &w));
		if (status != done)
			return failed("PMIx_server_register_client", status);
	}
	return NULL;
}

char *pmix_environment(const char *namespace, uint32_t task, char ***variables) {
	struct process p = {.rank = task};
	strncpy(p.namespace, namespace, namespace_size - 1);
	int status = setup_fork(&p, variables);
	return status == done ? NULL : failed("PMIx_server_setup_fork", status);
}

void pmix_close(void) { server_finalize(); }
