// A driver for tests: what libcuda.so.1 and libnvidia-ml.so.1 say of four made-up GPUs, in the layouts of
// cuda.h and nvml.h.
#include <stdio.h>
#include <string.h>

struct gpu {
	const char *bus;
	int sm, gdr, dmabuf; // -1: the query fails, although it writes a 1
};

static const struct gpu gpus[] = {
	{"00000000:1B:00.0", 90, 1, 1},
	{"00000000:1C:00.0", 80, 1, 0},
	{"00010000:1D:00.0", 80, 0, 1},
	{"00000000:1E:00.0", 50, -1, -1},
};
enum { count = sizeof gpus / sizeof *gpus };

int cuda_init, nvml_init, nvml_open; // what the two Inits return; calls of nvmlInit less those of nvmlShutdown
static int cuda_ready;

int cuInit(unsigned flags) {
	cuda_ready = flags == 0 && cuda_init == 0;
	return flags ? 1 : cuda_init;
}

int cuDeviceGetByPCIBusId(int *dev, const char *id) { // of sysfs's form, in lower case
	static const char *ids[] = {"0000:1b:00.0", "0000:1c:00.0", "10000:1d:00.0", "0000:1e:00.0"};
	for (*dev = 0; cuda_ready && *dev < count; ++*dev)
		if (!strcmp(id, ids[*dev]))
			return 0;
	*dev = 0;
	return 101;
}

int cuDeviceGetAttribute(int *value, int attribute, int dev) {
	int is = attribute == 116 ? gpus[dev].gdr : attribute == 124 ? gpus[dev].dmabuf : 0;
	*value = is != 0;
	return is < 0;
}

int nvmlInit_v2(void) {
	nvml_open += nvml_init == 0;
	return nvml_init;
}

int nvmlShutdown(void) {
	nvml_open--;
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n) {
	*n = count;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, const struct gpu **dev) {
	*dev = &gpus[i];
	return 0;
}

struct pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};

int nvmlDeviceGetPciInfo_v3(const struct gpu *g, struct pci *out) {
	strcpy(out->text, g->bus);
	return 0;
}

int nvmlDeviceGetCudaComputeCapability(const struct gpu *g, int *major, int *minor) {
	*major = g->sm / 10, *minor = g->sm % 10;
	return 0;
}

int nvmlDeviceGetName(const struct gpu *g, char *out, unsigned size) {
	snprintf(out, size, "GPU of sm_%d", g->sm);
	return 0;
}

// Link 1 does without peer-to-peer, link 2 is down, link 3 answers no question, those from 5 to 11 are down;
// what is beyond 11 is up, on whatever GPU.
int nvmlDeviceGetNvLinkCapability(const struct gpu *g, unsigned link, int capability, unsigned *out) {
	*out = capability != 0 || link != 1;
	return 0;
}

static int up(unsigned link) { return link != 2 && (link < 5 || link > 11); }

int nvmlDeviceGetNvLinkState(const struct gpu *g, unsigned link, unsigned *active) {
	*active = up(link) && g->sm < 90;
	return link == 3;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(const struct gpu *g, unsigned link, struct pci *out) {
	strcpy(out->text, link < 4 ? gpus[1 - (g - gpus) % 2].bus : "FFFFFFF:FF:FF.0");
	return 0;
}

struct field {
	unsigned id, scope;
	long long timestamp, latency;
	int type, returned;
	unsigned value, rest;
};

int nvmlDeviceGetFieldValues(const struct gpu *g, int n, struct field *f) {
	f->returned = 0;
	switch (f->id) {
	case 165: // the state of NVLink scope
		f->value = up(f->scope), f->returned = f->scope == 3;
		return 0;
	case 170: // the number of C2C links
		f->value = 4;
		return 0;
	case 171: // the state of one
		f->value = f->scope != 2;
		return 0;
	case 172: // the speed of one
		f->value = 40000 + f->scope, f->returned = f->scope == 3;
		return 0;
	}
	return 2;
}
