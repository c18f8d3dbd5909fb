// The supervised program of the measurements. It writes when it began and its process id into its place of a file that
// the observer has mapped, and then waits for a signal. The observer reads exact times from memory, whatever the
// supervisor did to start the program, and looks at no process table.
//
// The first argument is the number of the place, counted from FIRST. The file is named like the program, with .page.

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FIRST = 100000000, PLACES = 20000 };

struct place {
	_Atomic long long pid;
	long long began; // nanoseconds of CLOCK_MONOTONIC
};

int main(int argc, char **argv)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);

	char path[4096];
	long number = argc == 2 ? atol(argv[1]) - FIRST : -1;
	if (number < 0 || number >= PLACES || snprintf(path, sizeof path, "%s.page", argv[0]) >= (int)sizeof path)
		return 2;

	int fd = open(path, O_RDWR | O_CLOEXEC);
	size_t size = PLACES * sizeof(struct place);
	struct place *places = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || places == MAP_FAILED)
		return 3;
	close(fd);

	places[number].began = now.tv_sec * 1000000000LL + now.tv_nsec;
	atomic_store(&places[number].pid, getpid()); // last: the observer reads the time after the id
	munmap(places, size);

	for (;;)
		pause();
}
