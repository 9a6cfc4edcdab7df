/* Runs a program in a mount namespace where the host's cgroup2 can't be seen beside its hierarchies of version 1: crun refuses
   a host that has both. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    if (unshare(CLONE_NEWNS) || mount("", "/", "", MS_REC | MS_SLAVE, "") ||
        (access("/sys/fs/cgroup/unified", F_OK) == 0 && mount("tmpfs", "/sys/fs/cgroup/unified", "tmpfs", 0, "size=4k"))) {
        perror("hide");
        return 1;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
