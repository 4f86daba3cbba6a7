/* DCMI for OpenIPMI's ipmi_sim, which has none: a module for its `loadlib`, our own model of DCMI 1.5
 * (group extension 0xdc). Options: the path of a file with the machine's draw in watts; the limit is
 * kept beside it in PATH.limit as "WATTS ACTIVE". */
#include <stdio.h>
#include <string.h>

#include <OpenIPMI/ipmi_err.h>
#include <OpenIPMI/mcserv.h>
#include <OpenIPMI/serv.h>

enum { kGroup = 0xdc, kReading = 0x02, kGetLimit = 0x03, kSetLimit = 0x04, kActivate = 0x05 };
enum { kLeastWatts = 50, kMostWatts = 1000 };

static char draw_file[256], limit_file[270];

static void put16(unsigned char *at, unsigned int value) {
  at[0] = value & 0xff;
  at[1] = (value >> 8) & 0xff;
}

static void read_limit(unsigned int *watts, unsigned int *active) {
  FILE *file = fopen(limit_file, "r");
  *watts = *active = 0;
  if (file == NULL) return;
  if (fscanf(file, "%u %u", watts, active) != 2) *watts = *active = 0;
  fclose(file);
}

static void write_limit(unsigned int watts, unsigned int active) {
  FILE *file = fopen(limit_file, "w");
  if (file == NULL) return;
  fprintf(file, "%u %u\n", watts, active);
  fclose(file);
}

static void answer(unsigned char *rdata, unsigned int *rdata_len, unsigned char code, unsigned int length) {
  rdata[0] = code;
  rdata[1] = kGroup;
  *rdata_len = length;
}

static void handle(lmc_data_t *mc, msg_t *msg, unsigned char *rdata, unsigned int *rdata_len, void *data) {
  unsigned int watts, active, draw;
  FILE *file = fopen(draw_file, "r");
  (void)mc;
  (void)data;
  if (file == NULL || fscanf(file, "%u", &draw) != 1) {
    if (file != NULL) fclose(file);
    return answer(rdata, rdata_len, 0xc1, 1);
  }
  fclose(file);
  read_limit(&watts, &active);
  memset(rdata, 0, 32);
  switch (msg->cmd) {
    case kReading:
      put16(rdata + 2, draw);
      put16(rdata + 4, draw);
      put16(rdata + 6, draw);
      put16(rdata + 8, draw);
      rdata[18] = 0x40; /* measurement is active */
      return answer(rdata, rdata_len, 0, 19);
    case kGetLimit:
      put16(rdata + 5, watts);
      return answer(rdata, rdata_len, active ? 0 : 0x80, 15);
    case kSetLimit: {
      unsigned int wanted = msg->len > 6 ? msg->data[5] | (unsigned int)msg->data[6] << 8 : 0;
      if (wanted < kLeastWatts || wanted > kMostWatts) return answer(rdata, rdata_len, 0x84, 2);
      write_limit(wanted, active);
      return answer(rdata, rdata_len, 0, 2);
    }
    case kActivate:
      write_limit(watts, msg->len > 1 ? msg->data[1] : 0);
      return answer(rdata, rdata_len, 0, 2);
    default:
      return answer(rdata, rdata_len, 0xc1, 1);
  }
}

int ipmi_sim_module_print_version(sys_data_t *sys, char *options) {
  (void)sys;
  (void)options;
  printf("kwatt test DCMI\n");
  return 0;
}

int ipmi_sim_module_init(sys_data_t *sys, const char *options) {
  (void)sys;
  snprintf(draw_file, sizeof draw_file, "%s", options);
  snprintf(limit_file, sizeof limit_file, "%s.limit", options);
  ipmi_emu_register_group_extension_handler(kGroup, handle, NULL);
  return 0;
}
