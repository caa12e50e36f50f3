// What gangd uses of libpmix's interface (PMIx 4): the library is opened at run time, so that its headers are not needed to build. Names and
// layouts are those of the PMIx standard; TestLayout compares them with the headers where these are installed.
#ifndef GANGD_PMIX_H
#define GANGD_PMIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { namespace_size = 256, key_size = 512, callbacks = 64 };

// Statuses.
enum { done = 0, not_found = -46, not_supported = -47, done_at_once = -157 };

// Types of values.
enum { type_bool = 1, type_string = 3, type_uint16 = 13, type_uint32 = 14, type_info = 24, type_array = 39, type_rank = 40 };

static const uint32_t all_ranks = UINT32_MAX - 1;

struct process {
	char namespace[namespace_size];
	uint32_t rank;
};

struct array {
	uint16_t type;
	size_t size;
	void *items;
};

struct value {
	uint16_t type;
	union {
		bool flag;
		char *text;
		uint16_t u16;
		uint32_t u32;
		struct array *array;
		void *largest[3];
	} is;
};

struct info {
	char key[key_size];
	uint32_t flags;
	struct value value;
};

typedef void (*op_done)(int status, void *data);
typedef void (*release)(void *data);
typedef void (*modex_done)(int status, const char *data, size_t size, void *cbdata, release free, void *freed);

// The functions of a server that libpmix calls, in the order of its table; those that are NULL it answers as not supported.
struct server {
	int (*connected)(const struct process *, void *, op_done, void *);
	int (*finalized)(const struct process *, void *, op_done, void *);
	int (*abort)(const struct process *, void *, int status, const char *text, struct process *, size_t, op_done, void *);
	int (*fence)(const struct process *, size_t, const struct info *, size_t, char *data, size_t size, modex_done, void *);
	int (*get)(const struct process *, const struct info *, size_t, modex_done, void *);
	void *others[callbacks]; // more than any version has
};

// A job as its tasks on this node are told of it.
struct job {
	char *namespace, *id, *dir, *host;
	uint32_t size, nodes, node;
	char *node_names, *node_tasks; // "n1,n2" and "0,1;2,3"
	uint32_t here;                 // tasks of this node
	uint32_t *tasks;
	char *peers; // the same, "0,1"
	uint32_t *node_of, *local_of; // by task
};

// Each gives NULL, or what went wrong.
char *pmix_open(const char *library);
char *pmix_serve(const struct job *);
char *pmix_environment(const char *namespace, uint32_t task, char ***variables);
void pmix_pass(void *call, void *data, const char *blob, size_t size);
void pmix_close(void);

#endif
